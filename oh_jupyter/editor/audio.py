"""Showing what an audio file says about itself."""

from __future__ import annotations

import importlib
import io
from pathlib import Path

from oh_jupyter.editor.messages import invalid_file
from oh_jupyter.errors import EditorError

__all__ = ["AUDIO_SUFFIXES", "describe_audio"]

AUDIO_SUFFIXES = frozenset((".mp3", ".wav", ".m4a", ".flac"))
"""Audio files that can be shown."""

# The names are those that exiftool uses, which agents know from the OpenHands editor.
_FIELDS = {
    "Title": "title",
    "Artist": "artist",
    "Band": "albumartist",
    "Album": "album",
    "Genre": "genre",
    "Track": "track",
    "Composer": "composer",
    "Comment": "comment",
    "DateTimeOriginal": "year",
    "NumChannels": "channels",
    "SampleRate": "samplerate",
    "BitsPerSample": "bitdepth",
}
_NO_TRANSCRIPT = (
    "Transcription is not made by the editor, which would send the recording to a service. "
    "Use the skill `parse_audio` with a configured model."
)


def describe_audio(path: Path, data: bytes) -> str:
    """Read the tags and the format of a recording.

    The OpenHands editor sends recordings to a web service to have them transcribed; this
    one never does.

    Args:
        path: The file, for its suffix and for errors.
        data: Its content.

    Returns:
        Markdown.

    Raises:
        FileValidationError: The package that reads tags is not installed.
        EditorError: The file is broken.
    """
    try:
        tinytag = importlib.import_module("tinytag")
    except ImportError:
        raise invalid_file(
            path,
            f"Showing {path.suffix} files needs the package tinytag. "
            "Install it with: pip install 'oh_jupyter[documents]'",
        ) from None
    try:
        tags = tinytag.TinyTag.get(f"audio{path.suffix.lower()}", file_obj=io.BytesIO(data))
    except Exception as error:
        raise EditorError(
            f"Error in converting file to Markdown: {error or type(error).__name__}. "
            f"Please use Python code to read {path}"
        ) from None
    lines = [
        f"{name}: {value}"
        for name, field in _FIELDS.items()
        if (value := getattr(tags, field, None)) not in (None, "")
    ]
    if tags.duration:
        minutes, seconds = divmod(tags.duration, 60)
        lines.append(f"Duration: {int(minutes)}:{seconds:05.2f}")
    return "\n".join([*lines, "", "### Audio Transcript:", _NO_TRANSCRIPT])
