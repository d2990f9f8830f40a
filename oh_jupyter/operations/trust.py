"""Operations on the settings file of a folder, which a person trusts."""

from __future__ import annotations

from dataclasses import dataclass, field

from oh_jupyter.operations.declaration import Operation


@dataclass(frozen=True)
class FolderSetting:
    """A setting of a folder's file.

    Attributes:
        name: Its name.
        value: Its value, as people see it.
    """

    name: str
    value: str


@dataclass(frozen=True)
class FolderSettings:
    """The settings of a folder that need a person's trust.

    Attributes:
        file: Path of the settings file; "" without one.
        digest: Identifies the contents of the file.
        settings: The settings; empty if none need trust.
    """

    file: str = ""
    digest: str = ""
    settings: list[FolderSetting] = field(default_factory=list)


@dataclass(frozen=True)
class UntrustedSettings(Operation[FolderSettings], scope="person"):
    """Return the folder's settings file, its digest, and its settings that need trust to hold."""


@dataclass(frozen=True)
class TrustFolder(Operation[None], scope="person"):
    """Trust the folder's settings file with the contents that the person has seen.

    Attributes:
        digest: Digest of these contents.
    """

    digest: str
