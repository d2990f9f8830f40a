"""Variables as files: data frames, arrays, figures, images, texts and other objects."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from oh_jupyter.errors import InspectionError

SAVE_SECONDS = 60.0
"""Time that the encoding of a variable may take."""

_FIGURES = (".png", ".svg", ".pdf", ".jpg")
_IMAGES = (".png", ".jpg", ".webp", ".gif", ".bmp", ".tiff")


def encoded(value: Any, path: str) -> bytes:
    """Return a value as the contents of a file, in the format of the file's suffix.

    Args:
        value: A pandas or polars table (.csv, .parquet, .json, .xlsx, .feather, .html), an array
            (.npy, .csv), a matplotlib figure or a Pillow image (.png and others), a text or bytes
            (any suffix), JSON-like data (.json), or any object (.pkl).
        path: Name of the file.

    Raises:
        InspectionError: The value cannot be written in this format.
    """
    suffix = PurePath(path).suffix.lower()
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if suffix == ".pkl":
        return _called(pickle.dumps, value)
    writer = _writers(value).get(suffix)
    if writer is None:
        formats = ", ".join(sorted({*_writers(value), ".pkl"}))
        raise InspectionError(
            f"A {type(value).__name__} cannot be saved as {suffix or 'a file without a suffix'}. "
            f"Use {formats}"
        )
    return _called(writer, value)


def _called(writer: Callable[[Any], bytes], value: Any) -> bytes:
    try:
        return writer(value)
    except ImportError as error:
        raise InspectionError(
            f"It was not saved, because a package is missing: {error}. Install it with %pip "
            "install, or save it as .csv or .pkl"
        ) from error
    except Exception as error:  # of any library
        raise InspectionError(f"It was not saved: {type(error).__name__}: {error}") from error


def _writers(value: Any) -> dict[str, Callable[[Any], bytes]]:
    """Return the formats for a value, with the functions that write them."""
    library, name = type(value).__module__.partition(".")[0], type(value).__name__
    if library == "pandas":
        return _PANDAS if name == "DataFrame" else {suffix: _series(suffix) for suffix in _PANDAS}
    if library == "polars":
        return _POLARS
    if library == "numpy":
        return _NUMPY
    if library == "matplotlib" and name == "Figure":
        return {suffix: _figure(suffix) for suffix in _FIGURES}
    if library == "PIL":
        return {suffix: _image(suffix) for suffix in _IMAGES}
    return {".json": _json}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def _buffered(write: Callable[[Any, io.BytesIO], object]) -> Callable[[Any], bytes]:
    """Return a function with the bytes that another one writes to a file."""

    def encode(value: Any) -> bytes:
        buffer = io.BytesIO()
        write(value, buffer)
        return buffer.getvalue()

    return encode


def _has_index(frame: Any) -> bool:
    """Return whether the index of a frame is more than the positions of its rows."""
    return type(frame.index).__name__ != "RangeIndex"


_PANDAS: dict[str, Callable[[Any], bytes]] = {
    ".csv": lambda frame: frame.to_csv(index=_has_index(frame)).encode(),
    ".parquet": _buffered(lambda frame, file: frame.to_parquet(file)),
    ".json": lambda frame: frame.to_json(orient="records", force_ascii=False).encode(),
    ".xlsx": _buffered(lambda frame, file: frame.to_excel(file, index=_has_index(frame))),
    ".feather": _buffered(lambda frame, file: frame.to_feather(file)),
    ".html": lambda frame: frame.to_html(index=_has_index(frame)).encode(),
}
_POLARS: dict[str, Callable[[Any], bytes]] = {
    ".csv": lambda frame: frame.write_csv().encode(),
    ".parquet": _buffered(lambda frame, file: frame.write_parquet(file)),
    ".json": lambda frame: frame.write_json().encode(),
    ".xlsx": _buffered(lambda frame, file: frame.write_excel(file)),
    ".feather": _buffered(lambda frame, file: frame.write_ipc(file)),
}


def _series(suffix: str) -> Callable[[Any], bytes]:
    return lambda series: _PANDAS[suffix](series.to_frame())


def _array_csv(array: Any, file: io.BytesIO) -> None:
    import numpy

    numpy.savetxt(file, array, delimiter=",", fmt="%s")


def _array(array: Any, file: io.BytesIO) -> None:
    import numpy

    numpy.save(file, array, allow_pickle=False)


_NUMPY = {".npy": _buffered(_array), ".csv": _buffered(_array_csv)}


def _figure(suffix: str) -> Callable[[Any], bytes]:
    return _buffered(lambda figure, file: figure.savefig(file, format=suffix[1:]))


def _image(suffix: str) -> Callable[[Any], bytes]:
    return _buffered(lambda image, file: image.save(file, format=_PILLOW_NAMES[suffix]))


_PILLOW_NAMES = {suffix: suffix[1:].upper() for suffix in _IMAGES} | {".jpg": "JPEG"}
