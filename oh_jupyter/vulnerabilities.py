"""Known vulnerabilities of installed packages that the requirements cannot or did not exclude."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version


@dataclass(frozen=True)
class Vulnerability:
    """A hole in the releases of a package before one that fixes it."""

    package: str
    fixed_in: str
    summary: str


KNOWN = (
    # Another package can have held these below our own lower bounds; pip only warns of that.
    Vulnerability(
        "jupyter_server", "2.20.0", "CVE-2026-44727, a stored XSS that runs code with the token"
    ),
    Vulnerability(
        "tornado", "6.5.3", "CVE-2025-67724 to 67726, header injection and denial of service"
    ),
    # Too many packages hold Pillow below 12 for a lower bound.
    Vulnerability("pillow", "12.1.1", "CVE-2026-25990, memory corruption by a crafted PSD file"),
)


def installed_vulnerabilities() -> Iterator[tuple[Vulnerability, str]]:
    """Yield each known vulnerability of this environment with the installed release."""
    from packaging.version import Version

    for vulnerability in KNOWN:
        try:
            installed = version(vulnerability.package)
        except PackageNotFoundError:
            continue
        if Version(installed) < Version(vulnerability.fixed_in):
            yield vulnerability, installed
