"""A folder full of modules and programs that leave a trace when they run."""

from __future__ import annotations

import sys
from pathlib import Path

LIBRARIES = """
IPython PIL acp aiohttp anyio azure bokeh boto3 botocore brotli bs4 charset_normalizer cloudpickle
cv2 docx dotenv fastjsonschema fsspec google h2 httpx httpx_sse jinja2 jsonschema jupyter_client
lxml magika mammoth markdownify markitdown matplotlib mcp nbformat numpy onnxruntime openai openpyxl
orjson pandas pdfminer pdfplumber playwright plotly polars pptx psutil puremagic pyarrow pydantic
pyflakes pylatexenc pypdf pypdfium2 requests s3fs sniffio socksio speech_recognition sse_starlette
tinytag tornado tqdm traitlets tree_sitter tree_sitter_bash tree_sitter_python trio urllib3 wcwidth
yaml youtube_transcript_api zmq zstandard
"""
"""Top-level modules that we import, or that our dependencies import if they are installed."""

PROGRAMS = ("bash", "bwrap", "git", "node", "chromium", "google-chrome", "python", "python3", "sh")

TRACE = "import sys\nopen({trace!r}, 'a').write(__name__ + '\\n')\n"


def fill(folder: Path, trace: Path) -> None:
    """Put a module of every known name, and programs, into a folder; they write into ``trace``."""
    names = {*sys.stdlib_module_names, *LIBRARIES.split(), "sitecustomize", "usercustomize"}
    for name in names - {"__main__", "antigravity", "this"}:
        (folder / f"{name}.py").write_text(TRACE.format(trace=str(trace)))
    entry = folder / "evil-1.0.dist-info"
    entry.mkdir()
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    groups = ("file_stores", "plugins", "skills", "agents")
    points = "".join(f"[oh_jupyter.{group}]\nlocal = evil:run\n" for group in groups)
    (entry / "entry_points.txt").write_text(points)
    (folder / "evil.py").write_text(TRACE.format(trace=str(trace)))
    for name in PROGRAMS:
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {name} >> {trace}\nexit 1\n")
        program.chmod(0o755)
