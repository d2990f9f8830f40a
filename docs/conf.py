"""The documentation's build: notebooks as tutorials, and reference pages made from the code."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

from oh_jupyter import __version__

sys.path.insert(0, str(Path(__file__).parent))

project = "oh_jupyter"
author = copyright = "The oh_jupyter developers"
release = version = __version__
extensions = [
    *("myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"),
]
exclude_patterns = ["_build"]

nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "linkify"]
myst_linkify_fuzzy_links = False
myst_heading_anchors = 3
# Outputs of notebooks that no page can show, and lexers for magics.
suppress_warnings = ["mystnb.unknown_mime_type", "misc.highlighting_failure"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["openhands"]
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = "oh_jupyter"
html_theme_options = {
    "github_url": "https://github.com/oh-jupyter/oh-jupyter",
    "show_prev_next": False,
    "navigation_with_keys": False,
}
html_show_sourcelink = False


def setup(app: Sphinx) -> None:
    """Write what is generated before Sphinx looks for pages."""
    import generate

    app.connect("builder-inited", lambda app: generate.write(Path(app.srcdir)))
