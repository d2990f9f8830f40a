"""Operations on files of the kernel's machine, and transfers of files in pieces."""

from __future__ import annotations

from dataclasses import dataclass

from oh_jupyter.operations.declaration import Operation


@dataclass(frozen=True)
class Transfer:
    """The start of an upload or download.

    Attributes:
        id: By which its next steps refer to it.
        name: Name of the file or folder; "" for an upload or a file of the store.
        size: Size of the file in bytes; null where it is not known yet.
        policy: Content security policy of a page; "" for other transfers.
    """

    id: str
    name: str = ""
    size: int | None = None
    policy: str = ""


@dataclass(frozen=True)
class Upload(Operation[Transfer], scope="anyone"):
    """Start the upload of a file; return the id of the transfer.

    Attributes:
        destination: Absolute path of the folder.
        filename: Name of the file; a zip file is unpacked.
        recursive: Refuse files that are not zip files.
        exact: Store a zip file as it is.
        within: The only folder in which the file may be, relative to the workspace; null for any.
    """

    destination: str
    filename: str
    recursive: bool = False
    exact: bool = False
    within: str | None = None


@dataclass(frozen=True)
class UploadToStore(Operation[Transfer], scope="anyone"):
    """Start the upload of a file to the store; return the id of the transfer.

    Attributes:
        path: The path in the store.
    """

    path: str


@dataclass(frozen=True)
class Send(Operation[None], scope="anyone"):
    """Write pieces of an upload, which are the request's body.

    Attributes:
        id: The transfer.
    """

    id: str


@dataclass(frozen=True)
class Finish(Operation[None], scope="anyone"):
    """Put an upload in place.

    Attributes:
        id: The transfer.
    """

    id: str


@dataclass(frozen=True)
class Download(Operation[Transfer], scope="anyone"):
    """Start the download of a file or directory as a zip file; return its id and name.

    Attributes:
        path: The file or directory.
    """

    path: str


@dataclass(frozen=True)
class DownloadFile(Operation[Transfer], scope="anyone"):
    """Start the download of one file; return its id, name and size.

    Attributes:
        path: The file.
    """

    path: str


@dataclass(frozen=True)
class DownloadPage(Operation[Transfer], scope="anyone"):
    """Start the download of the page that shows a picture or a PDF file.

    The reply also has the page's content security policy.

    Attributes:
        path: The file.
    """

    path: str


@dataclass(frozen=True)
class DownloadFromStore(Operation[Transfer], scope="anyone"):
    """Start the download of a file of the store; return the id of the transfer.

    Attributes:
        path: The path in the store.
    """

    path: str


@dataclass(frozen=True)
class Receive(Operation[bytes], scope="anyone"):
    """Return the next piece of a download; an empty one is the last.

    Attributes:
        id: The transfer.
    """

    id: str


@dataclass(frozen=True)
class GiveUp(Operation[None], scope="anyone"):
    """End a transfer, and discard what was uploaded.

    Attributes:
        id: The transfer; one that has ended already is no error.
    """

    id: str


@dataclass(frozen=True)
class AskFile(Operation[None], scope="agent"):
    """Ask a person, if necessary, before the server uses a file for an agent.

    Attributes:
        path: The file.
        tool: The tool that uses it, as the question names it.
        writes: Whether the tool writes the file, as opposed to only reading it.
    """

    path: str
    tool: str
    writes: bool = False


@dataclass(frozen=True)
class AskWorkspace(Operation[None], scope="agent"):
    """Ask a person before an agent gets a kernel whose workspace is not part of this one.

    Attributes:
        path: The workspace of that kernel.
    """

    path: str


@dataclass(frozen=True)
class WorkspaceFiles(Operation[list[str]], scope="person"):
    """List files of the workspace whose path contains a text, the best matches first.

    Attributes:
        text: The text, in upper or lower case.
    """

    text: str
