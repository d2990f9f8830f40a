"""Diagnosis of an environment, with the command that fixes each problem."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shlex
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
from oh_jupyter.config import Settings, state_home
from oh_jupyter.errors import ConfigError, LedgerError, OhJupyterError
from oh_jupyter.installed import find_program, python_environment
from oh_jupyter.trust import untrusted_notice
from oh_jupyter.vulnerabilities import installed_vulnerabilities

PROGRAM_SECONDS = 20.0
"""Timeout for the version of a program."""

MIN_NODE = 18

MIN_JUPYTERLAB = "4.6"
"""Release that the panel is built for."""


@dataclass(frozen=True)
class Check:
    """Result of one check.

    Attributes:
        name: Subject of the check.
        status: ``ok``, ``missing`` (something optional is not installed) or ``wrong``.
        found: The finding.
        mend: The command or setting that fixes it; "" if nothing is broken.
    """

    name: str
    status: Literal["ok", "missing", "wrong"]
    found: str
    mend: str = ""

    def __str__(self) -> str:
        """Format as one line, with the fix below it."""
        mark = {"ok": "ok     ", "missing": "missing", "wrong": "WRONG  "}[self.status]
        return f"{mark}  {self.name}: {self.found}" + (
            f"\n         {self.mend}" if self.mend else ""
        )


def examine(settings: Settings, faults: Sequence[ConfigError] = ()) -> list[Check]:
    """Run all checks; only programs that print their version are started.

    Args:
        settings: The operator's settings, for the store, the webhook and the agents.
        faults: Errors of invalid settings.

    Returns:
        The results. A check that fails unexpectedly is ``wrong``, with its error.
    """
    results = [_setting_fault(str(fault)) for fault in faults]
    for check in _CHECKS:
        try:
            results += check(settings)
        except Exception as error:  # one broken check must not hide the others
            name = check.__name__.strip("_").replace("_", " ")
            results.append(Check(name, "wrong", f"{type(error).__name__}: {error}"))
    return results


def _python(settings: Settings) -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("oh_jupyter", "ok", f"{__version__} on Python {version} in {sys.prefix}")


def _requirements(settings: Settings) -> Iterator[Check]:
    """Check for missing and incompatible packages."""
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
        words += [f"incompatible: {', '.join(clashes)}"] if clashes else []
        command = f"{sys.executable} -m pip install --upgrade oh_jupyter"
        yield Check("packages", "wrong", "; ".join(words), command)
    else:
        yield Check("packages", "ok", "all requirements are installed")


def _vulnerabilities(settings: Settings) -> Iterator[Check]:
    """Check for installed releases with known vulnerabilities."""
    vulnerable = list(installed_vulnerabilities())
    for each, installed in vulnerable:
        command = f"{sys.executable} -m pip install '{each.package}>={each.fixed_in}'"
        yield Check("security", "wrong", f"{each.package} {installed}: {each.summary}", command)
    if not vulnerable:
        yield Check("security", "ok", "no release with a known vulnerability")


def _kernel(settings: Settings) -> Iterator[Check]:
    """Check that notebooks' kernels run in this environment."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    command = f"{sys.executable} -m ipykernel install --sys-prefix"
    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        yield Check("kernel", "wrong", "there is no kernel 'python3'", command)
        return
    program = find_program(spec.argv[0]) or spec.argv[0]
    major, minor = sys.version_info[:2]
    if spec.argv[0] in ("python", f"python{major}", f"python{major}.{minor}"):
        program = sys.executable  # as in jupyter_client
    if os.path.realpath(program) == os.path.realpath(sys.executable):
        yield Check("kernel", "ok", f"python3 runs in {sys.prefix}")
    else:
        finding = f"python3 runs {program}, in a different environment"
        yield Check("kernel", "wrong", finding, f"{command}, or install oh_jupyter there")


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
        finding = "not enabled in " + os.pathsep.join(paths)
        yield Check("server extension", "wrong", finding, command)


def _lab_extension(settings: Settings) -> Iterator[Check]:
    from jupyter_core.paths import jupyter_path
    from packaging.version import Version

    name = "oh-jupyter"
    manifests = [Path(path, "labextensions", name, "package.json") for path in jupyter_path()]
    try:
        lab = importlib.metadata.version("jupyterlab")
    except importlib.metadata.PackageNotFoundError:
        yield Check("JupyterLab", "missing", "not installed", "pip install 'oh_jupyter[lab]'")
        return
    manifest = next((path for path in manifests if path.exists()), None)
    if Version(lab) < Version(MIN_JUPYTERLAB):
        command = f"{sys.executable} -m pip install --upgrade jupyterlab"
        finding = f"{lab}; the panel of oh_jupyter needs {MIN_JUPYTERLAB} or newer"
        yield Check("JupyterLab", "wrong", finding, command)
    elif manifest is None:
        command = f"{sys.executable} -m pip install --force-reinstall --no-deps oh_jupyter"
        yield Check("JupyterLab", "wrong", f"{lab}, without the panel of oh_jupyter", command)
    else:
        version = json.loads(manifest.read_text("utf-8"))["version"]
        yield Check("JupyterLab", "ok", f"{lab}, with the panel of oh_jupyter {version}")


def _policy(settings: Settings) -> Iterator[Check]:
    if settings.policy:
        rules = ", ".join(f"{name}={value}" for name, value in settings.policy.items())
        yield Check("policy", "ok", f"the administrator's: {rules}")


def _browser(settings: Settings) -> Iterator[Check]:
    """Check that the browser starts, and the driver that controls it."""
    from oh_jupyter.browser.executable import find_executable, find_node, printed_version

    if not settings.enable_browser:
        yield Check("browser", "ok", "switched off (enable_browser)")
        return
    try:
        executable = find_executable(settings.browser_path)
        printed_version(executable)
        yield Check("browser", "ok", executable)
    except OhJupyterError as error:
        yield Check("browser", "wrong", str(error), "oh-jupyter install-browser")
    try:
        yield Check("browser driver", "ok", find_node())
    except OhJupyterError as error:
        yield Check("browser driver", "wrong", str(error), "oh-jupyter install-browser")


def _git(settings: Settings) -> Iterator[Check]:
    version = _version("git")
    if version is None:
        mend = "install git (Debian: apt-get install git; conda: conda install git)"
        yield Check("git", "missing", "not on the PATH; %oh_rewind needs it", mend)
    else:
        yield Check("git", "ok", version)


def _agents(settings: Settings) -> Iterator[Check]:
    from oh_jupyter.agents import known_agents

    agents = known_agents(settings.agents)
    installed = [agent.name for agent in agents.values() if agent.is_installed]
    if installed:
        yield Check("agents", "ok", ", ".join(installed))
    else:
        mend = "for example npm install -g @agentclientprotocol/claude-agent-acp"
        yield Check("agents", "missing", f"none of {', '.join(agents)} is on the PATH", mend)
    by_npx = [agent.name for agent in agents.values() if agent.npm_package]
    node = _version("node")
    if node is None:
        finding = f"not on the PATH; {', '.join(by_npx)} need it"
        yield Check("Node.js", "missing", finding, "install Node.js, for example from nodejs.org")
    elif int(node.lstrip("v").partition(".")[0]) < MIN_NODE:
        yield Check("Node.js", "wrong", f"{node}, older than {MIN_NODE}", "install a newer one")
    else:
        yield Check("Node.js", "ok", node)
    if importlib.util.find_spec("acp") is None:
        mend = 'pip install "oh_jupyter[agents]"'
        yield Check("%oh_agent", "missing", "needs the package agent-client-protocol", mend)


def _sandbox(settings: Settings) -> Iterator[Check]:
    """Check that a sandbox can be made; missing is wrong only where one is set."""
    from oh_jupyter.sandbox import find_engine
    from oh_jupyter.sandbox.availability import enforced_by

    engine = find_engine()
    if engine.program is not None:
        yield Check("sandbox", "ok", f"{engine.program} works; sandbox = {settings.sandbox!r}")
        is_superuser = sys.platform == "linux" and os.geteuid() == 0
        yield Check("sandbox limits", "ok", enforced_by(is_superuser=is_superuser))
        return
    status: Literal["missing", "wrong"] = "missing" if settings.sandbox == "off" else "wrong"
    yield Check("sandbox", status, engine.problem, engine.mend)


def _settings(settings: Settings) -> Iterator[Check]:
    """Check that a kernel's runtime starts with these settings."""
    from oh_jupyter.runtime.runtime import setting_faults

    for name, fault in setting_faults(settings):
        yield _setting_fault(f"{name}: {fault}")
    if notice := untrusted_notice():
        yield Check("settings of the folder", "missing", notice, "oh-jupyter trust")


def _setting_fault(fault: str) -> Check:
    mend = "correct or remove it where it is set; until then no kernel loads oh_jupyter"
    return Check("settings", "wrong", fault, mend)


def _store(settings: Settings) -> Iterator[Check]:
    """Check that the store can be written and read."""
    from oh_jupyter.storage.factory import make_file_store

    name, probe = settings.file_store, "oh_jupyter_doctor.txt"
    where = f"{name} {settings.file_store_path or ''}".strip()
    quiet = Settings(
        file_store=settings.file_store, file_store_path=settings.file_store_path
    )  # without a webhook: nobody needs to know about this file
    try:
        store = make_file_store(quiet)
        store.write(probe, __version__)
        assert store.read(probe) == __version__
        store.delete(probe)
    except (OhJupyterError, OSError) as error:
        mend = "set file_store and file_store_path, or the credentials that they need"
        yield Check("store", "wrong", f"{where}: {error}", mend)
    else:
        yield Check("store", "ok", where)


def _webhook(settings: Settings) -> Iterator[Check]:
    """Check that the receiver of webhooks accepts connections; send nothing."""
    import socket

    url = settings.file_store_web_hook_url
    if not url:
        return
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    shown = f"{parts.scheme}://{parts.hostname}"
    try:
        socket.create_connection(address, timeout=PROGRAM_SECONDS).close()
    except OSError as error:
        finding = f"{shown} cannot be reached: {error.strerror or error}"
        mend = "start the receiver, or correct file_store_web_hook_url; reports wait until then"
        yield Check("webhook", "wrong", finding, mend)
    else:
        yield Check("webhook", "ok", f"{shown} answers")


def _ledger(settings: Settings) -> Iterator[Check]:
    """Check the database with what outlives kernels, and where it is."""
    from oh_jupyter.state.location import obstacle
    from oh_jupyter.state.shared import open_ledger

    ledger, home = open_ledger(), state_home()
    where, reason = str(ledger.path), obstacle(home)
    if reason:
        where += f", because {home} {reason}"
    try:
        ledger.rows("SELECT name FROM identity")
    except LedgerError as error:
        yield Check("ledger", "wrong", str(error), "see oh-jupyter state verify")
    else:
        yield Check("ledger", "ok", where)
    for path in ledger.damaged():
        finding = (
            f"{path} was damaged, and moved aside; its approvals, tokens and trust are gone, and "
            "files that waited for an unreachable store are only in it"
        )
        yield Check("damaged ledger", "wrong", finding, f"rm {shlex.quote(str(path))}*")


def _directories(settings: Settings) -> Iterator[Check]:
    """Check that our directories are writable and have free space."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    workspace = settings.workspace_dir or os.getcwd()
    directories = {"state": state, "workspace": workspace, "temporary": tempfile.gettempdir()}
    for name, directory in directories.items():
        ancestors = (Path(directory), *Path(directory).absolute().parents)
        existing = next(path for path in ancestors if path.exists())
        try:
            with tempfile.TemporaryFile(dir=existing):
                pass
        except OSError as error:
            finding = f"{directory} cannot be written: {error.strerror}"
            mend = f"chown -R {os.environ.get('USER', '$USER')} {existing}"
            if name == "state":
                mend += ", or set XDG_STATE_HOME to another directory"
            yield Check(f"{name} directory", "wrong", finding, mend)
        else:
            free_mb = shutil.disk_usage(existing).free // 2**20
            if free_mb < 100:
                finding = f"{directory}: {free_mb} MB left"
                yield Check(f"{name} directory", "wrong", finding, "free some space on that disk")
            else:
                yield Check(f"{name} directory", "ok", directory)


def _version(program: str) -> str | None:
    """Return the version of a program, or None if it is not on the PATH."""
    path = find_program(program)
    if path is None:
        return None
    done = subprocess.run(
        [path, "--version"],
        capture_output=True,
        env=python_environment(),
        text=True,
        timeout=PROGRAM_SECONDS,
    )
    return (done.stdout or done.stderr).strip().partition("\n")[0]


_CHECKS: tuple[Callable[[Settings], Iterator[Check]], ...] = (
    _python,
    _requirements,
    _vulnerabilities,
    _kernel,
    _server_extension,
    _lab_extension,
    _policy,
    _browser,
    _git,
    _sandbox,
    _agents,
    _settings,
    _store,
    _webhook,
    _ledger,
    _directories,
)
