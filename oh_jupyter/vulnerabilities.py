"""Known vulnerabilities of packages that our requirements cannot exclude."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version


@dataclass(frozen=True)
class Vulnerability:
    """A vulnerability in the releases of a package before its fix."""

    package: str
    fixed_in: str
    summary: str


KNOWN = (
    # Another package may pin these below our lower bounds; pip only warns about that.
    Vulnerability(
        "jupyter_server", "2.20.0", "CVE-2026-44727, a stored XSS that runs code with the token"
    ),
    Vulnerability(
        "tornado", "6.5.3", "CVE-2025-67724 to 67726, header injection and denial of service"
    ),
    # Too many packages need Pillow below 12 for a lower bound.
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
