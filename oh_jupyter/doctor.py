"""What of oh_jupyter works in this environment, and the command that mends what does not."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from oh_jupyter._version import __version__
from oh_jupyter.config import Settings
from oh_jupyter.errors import ConfigError, OhJupyterError
from oh_jupyter.vulnerabilities import installed_vulnerabilities

PROGRAM_SECONDS = 20.0
"""How long a program may take to tell its version."""

MIN_NODE = 18

MIN_JUPYTERLAB = "4.6"
"""What the panel is built against."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What was looked at.
        status: ``ok``, ``missing`` (something optional is not there) or ``wrong``.
        found: What was found.
        mend: The command or setting that mends it; "" if there is nothing to mend.
    """

    name: str
    status: Literal["ok", "missing", "wrong"]
    found: str
    mend: str = ""

    def __str__(self) -> str:
        """One line, and below it what mends it."""
        mark = {"ok": "ok     ", "missing": "missing", "wrong": "WRONG  "}[self.status]
        return f"{mark}  {self.name}: {self.found}" + (
            f"\n         {self.mend}" if self.mend else ""
        )


def examine(settings: Settings, faults: Sequence[ConfigError] = ()) -> list[Check]:
    """Look at everything; nothing is started but programs that tell their version.

    Args:
        settings: What the operator set, for the store, the webhook and the agents.
        faults: What was given for settings and cannot be used.

    Returns:
        The checks. One that fails in an unexpected way is ``wrong``, with its error.
    """
    found = [_setting_fault(str(fault)) for fault in faults]
    for look in _LOOKS:
        try:
            found += look(settings)
        except Exception as problem:  # one broken part must not hide the others
            name = look.__name__.strip("_").replace("_", " ")
            found.append(Check(name, "wrong", f"{type(problem).__name__}: {problem}"))
    return found


def _python(settings: Settings) -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("oh_jupyter", "ok", f"{__version__} on Python {version} in {sys.prefix}")


def _requirements(settings: Settings) -> Iterator[Check]:
    """Versions that clash with what the package needs."""
    from packaging.requirements import Requirement

    clashes, missing = [], []
    for line in importlib.metadata.requires("oh_jupyter") or ():
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(str(requirement))
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            clashes.append(f"{requirement.name} {version} (needed: {requirement.specifier})")
    if clashes or missing:
        words = [f"not installed: {', '.join(missing)}"] if missing else []
        words += [f"other versions than needed: {', '.join(clashes)}"] if clashes else []
        command = f"{sys.executable} -m pip install --upgrade oh_jupyter"
        yield Check("packages", "wrong", "; ".join(words), command)
    else:
        yield Check("packages", "ok", "all that is needed is there")


def _vulnerabilities(settings: Settings) -> Iterator[Check]:
    """Check for installed releases with known vulnerabilities."""
    vulnerable = list(installed_vulnerabilities())
    for each, installed in vulnerable:
        command = f"{sys.executable} -m pip install '{each.package}>={each.fixed_in}'"
        yield Check("security", "wrong", f"{each.package} {installed}: {each.summary}", command)
    if not vulnerable:
        yield Check("security", "ok", "no release with a hole that this version knows of")


def _kernel(settings: Settings) -> Iterator[Check]:
    """Whether a notebook's kernel runs in this environment."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    command = f"{sys.executable} -m ipykernel install --sys-prefix"
    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        yield Check("kernel", "wrong", "there is no kernel 'python3'", command)
        return
    program = shutil.which(spec.argv[0]) or spec.argv[0]
    major, minor = sys.version_info[:2]
    if spec.argv[0] in ("python", f"python{major}", f"python{major}.{minor}"):
        program = sys.executable  # as jupyter_client has it
    if os.path.realpath(program) == os.path.realpath(sys.executable):
        yield Check("kernel", "ok", f"python3 runs in {sys.prefix}")
    else:
        found = f"python3 runs {program}, another environment than this one"
        yield Check("kernel", "wrong", found, f"{command}, or install oh_jupyter there")


def _server_extension(settings: Settings) -> Iterator[Check]:
    from jupyter_core.paths import jupyter_config_path
    from jupyter_server.extension.config import ExtensionConfigManager

    paths = jupyter_config_path()
    manager: Any = ExtensionConfigManager(read_config_path=paths)
    enabled = manager.get_jpserver_extensions()
    if enabled.get("oh_jupyter"):
        yield Check("server extension", "ok", "enabled")
    else:
        command = "jupyter server extension enable oh_jupyter"
        found = "not enabled in " + os.pathsep.join(paths)
        yield Check("server extension", "wrong", found, command)


def _lab_extension(settings: Settings) -> Iterator[Check]:
    from jupyter_core.paths import jupyter_path
    from packaging.version import Version

    name = "oh-jupyter"
    places = [Path(path, "labextensions", name, "package.json") for path in jupyter_path()]
    try:
        lab = importlib.metadata.version("jupyterlab")
    except importlib.metadata.PackageNotFoundError:
        yield Check("JupyterLab", "missing", "not installed", "pip install 'oh_jupyter[lab]'")
        return
    place = next((place for place in places if place.exists()), None)
    if Version(lab) < Version(MIN_JUPYTERLAB):
        command = f"{sys.executable} -m pip install --upgrade jupyterlab"
        found = f"{lab}; the panel of oh_jupyter needs {MIN_JUPYTERLAB} or newer"
        yield Check("JupyterLab", "wrong", found, command)
    elif place is None:
        command = f"{sys.executable} -m pip install --force-reinstall --no-deps oh_jupyter"
        yield Check("JupyterLab", "wrong", f"{lab}, without the panel of oh_jupyter", command)
    else:
        version = json.loads(place.read_text("utf-8"))["version"]
        yield Check("JupyterLab", "ok", f"{lab}, with the panel of oh_jupyter {version}")


def _browser(settings: Settings) -> Iterator[Check]:
    from oh_jupyter.browser.executable import find_executable

    if not settings.enable_browser:
        yield Check("browser", "ok", "switched off (enable_browser)")
        return
    try:
        yield Check("browser", "ok", find_executable(settings.browser_path))
    except OhJupyterError as problem:
        yield Check("browser", "wrong", str(problem), "oh-jupyter install-browser")


def _git(settings: Settings) -> Iterator[Check]:
    version = _version("git")
    if version is None:
        mend = "install git (Debian: apt-get install git; conda: conda install git)"
        yield Check("git", "missing", "not on the PATH, so that %oh_rewind cannot go back", mend)
    else:
        yield Check("git", "ok", version)


def _agents(settings: Settings) -> Iterator[Check]:
    from oh_jupyter.agents import known_agents

    agents = known_agents(settings.agents)
    there = [agent.name for agent in agents.values() if agent.is_installed]
    if there:
        yield Check("agents", "ok", ", ".join(there))
    else:
        mend = "for example npm install -g @agentclientprotocol/claude-agent-acp"
        yield Check("agents", "missing", f"none of {', '.join(agents)} is on the PATH", mend)
    by_npx = [agent.name for agent in agents.values() if agent.npm_package]
    node = _version("node")
    if node is None:
        found = f"not on the PATH; {', '.join(by_npx)} need it"
        yield Check("Node.js", "missing", found, "install Node.js, for example from nodejs.org")
    elif int(node.lstrip("v").partition(".")[0]) < MIN_NODE:
        yield Check("Node.js", "wrong", f"{node}, older than {MIN_NODE}", "install a newer one")
    else:
        yield Check("Node.js", "ok", node)
    if importlib.util.find_spec("acp") is None:
        mend = 'pip install "oh_jupyter[agents]"'
        yield Check("%oh_agent", "missing", "needs the package agent-client-protocol", mend)


def _settings(settings: Settings) -> Iterator[Check]:
    """Whether a kernel's runtime starts with these settings."""
    from oh_jupyter.runtime.runtime import setting_faults

    for name, problem in setting_faults(settings):
        yield _setting_fault(f"{name}: {problem}")


def _setting_fault(found: str) -> Check:
    mend = "correct it where it is set, or take it out; until then no kernel loads oh_jupyter"
    return Check("settings", "wrong", found, mend)


def _store(settings: Settings) -> Iterator[Check]:
    """Whether a file can be written to the store, and read."""
    from oh_jupyter.storage.registry import make_file_store

    name, probe = settings.file_store, "oh_jupyter_doctor.txt"
    where = f"{name} {settings.file_store_path or ''}".strip()
    quiet = Settings(
        file_store=settings.file_store, file_store_path=settings.file_store_path
    )  # whoever receives webhooks need not hear of this
    try:
        store = make_file_store(quiet)
        store.write(probe, __version__)
        assert store.read(probe) == __version__
        store.delete(probe)
    except (OhJupyterError, OSError) as problem:
        mend = "set file_store and file_store_path, or the credentials that they need"
        yield Check("store", "wrong", f"{where}: {problem}", mend)
    else:
        yield Check("store", "ok", where)


def _webhook(settings: Settings) -> Iterator[Check]:
    """Whether a connection to the receiver of webhooks can be made; nothing is sent."""
    import socket

    url = settings.file_store_web_hook_url
    if not url:
        return
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    shown = f"{parts.scheme}://{parts.hostname}"
    try:
        socket.create_connection(address, timeout=PROGRAM_SECONDS).close()
    except OSError as problem:
        found = f"{shown} cannot be reached: {problem.strerror or problem}"
        mend = "start the receiver, or correct file_store_web_hook_url; requests wait until then"
        yield Check("webhook", "wrong", found, mend)
    else:
        yield Check("webhook", "ok", f"{shown} answers")


def _places(settings: Settings) -> Iterator[Check]:
    """Whether the directories that are written to can be written to."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    workspace = settings.workspace_dir or os.getcwd()
    places = {"state": state, "workspace": workspace, "temporary": tempfile.gettempdir()}
    for name, place in places.items():
        above = (Path(place), *Path(place).absolute().parents)
        existing = next(path for path in above if path.exists())
        try:
            with tempfile.TemporaryFile(dir=existing):
                pass
        except OSError as problem:
            found = f"{place} cannot be written: {problem.strerror}"
            mend = f"chown -R {os.environ.get('USER', '$USER')} {existing}"
            if name == "state":
                mend += ", or set XDG_STATE_HOME to another directory"
            yield Check(f"{name} directory", "wrong", found, mend)
        else:
            free_mb = shutil.disk_usage(existing).free // 2**20
            if free_mb < 100:
                found = f"{place}: {free_mb} MB left"
                yield Check(f"{name} directory", "wrong", found, "free some space on that disk")
            else:
                yield Check(f"{name} directory", "ok", place)


def _version(program: str) -> str | None:
    """What a program says of its version; None if it is not on the PATH."""
    path = shutil.which(program)
    if path is None:
        return None
    done = subprocess.run(
        [path, "--version"], capture_output=True, text=True, timeout=PROGRAM_SECONDS
    )
    return (done.stdout or done.stderr).strip().partition("\n")[0]


_LOOKS: tuple[Callable[[Settings], Iterator[Check]], ...] = (
    _python,
    _requirements,
    _vulnerabilities,
    _kernel,
    _server_extension,
    _lab_extension,
    _browser,
    _git,
    _agents,
    _settings,
    _store,
    _webhook,
    _places,
)
