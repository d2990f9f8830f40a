"""Skills that ask a model about pictures, sounds and films.

No model can be had in a test: an HTTP server on this machine stands for one. It speaks
OpenAI's API and says what it was sent.
"""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image

from oh_jupyter import skills
from oh_jupyter.skills.file_reader import parse_audio, parse_image, parse_video


class _Api(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, body))
        if self.path == "/v1/audio/translations":
            answer = {"text": f"heard {body.count(b'la ')} la"}
        else:
            request = json.loads(body)
            task, image = request["messages"][0]["content"]
            kind, _, data = image["image_url"]["url"].partition(";base64,")
            size = len(base64.b64decode(data))
            text = f"{request['model']} {task['text']} {kind} {size > 100}"
            message = {"role": "assistant", "content": text}
            answer = {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": request["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def api(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    server.requests = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_MODEL", "seeing")
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "a.png"
    Image.effect_noise((64, 48), 50).save(path)
    return path


def test_they_are_offered_without_a_key_too(monkeypatch):
    pytest.importorskip("cv2")
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert {"parse_audio", "parse_image", "parse_video"} <= set(skills.available())


def test_a_picture(api, picture, capsys):
    parse_image(str(picture))
    assert capsys.readouterr().out == (
        f"[Reading image file from {picture}]\n"
        "seeing Describe this image as detail as possible. data:image/png True\n"
    )


def test_a_sound(api, tmp_path, capsys):
    path = tmp_path / "a.wav"
    path.write_bytes(b"la la ")
    parse_audio(str(path))
    assert capsys.readouterr().out == f"[Transcribing audio file from {path}]\nheard 2 la\n"
    assert b"whisper-1" in api.requests[0][1]


@pytest.fixture
def film(tmp_path):
    cv2 = pytest.importorskip("cv2")
    numpy = pytest.importorskip("numpy")

    def make(frames: int):
        path = tmp_path / "a.avi"
        writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 10, (32, 32))
        for number in range(frames):
            writer.write(numpy.full((32, 32, 3), number % 256, dtype=numpy.uint8))
        writer.release()
        return path

    return make


def test_a_film(api, film, capsys):
    path = film(25)
    parse_video(str(path), task="What?", frame_interval=10)
    out = capsys.readouterr().out
    assert out.startswith(
        f"[Processing video file from {path} with frame interval 10]\n"
        "Totally 3 would be analyze...\n\n"
        f"Process the {path}, current No. 0 frame...\n"
        "Frame 1's content: seeing What? data:image/jpeg True\n"
    )
    assert f"Process the {path}, current No. 20 frame...\nFrame 3's content:" in out
    assert len(api.requests) == 3


@pytest.mark.thorough
def test_a_long_film_has_thirty_frames_at_most(api, film, capsys):
    parse_video(str(film(100)), frame_interval=1)
    assert "Totally 25 would be analyze..." in capsys.readouterr().out
    assert len(api.requests) == 25


def test_failures_are_reported(api, tmp_path, capsys, monkeypatch):
    pytest.importorskip("cv2")
    parse_image("/no/such.png")
    assert "Error with the request: [Errno 2]" in capsys.readouterr().out
    parse_audio("/no/such.wav")
    assert "Error transcribing audio file: [Errno 2]" in capsys.readouterr().out
    parse_video("/no/such.mp4")
    assert "Error reading video file: File /no/such.mp4 not found." in capsys.readouterr().out
    (tmp_path / "a.mp4").write_text("no film")
    parse_video(str(tmp_path / "a.mp4"))
    assert "is not a readable video" in capsys.readouterr().out
    monkeypatch.delenv("OPENAI_API_KEY")
    (tmp_path / "a.png").write_bytes(b"x")
    parse_image(str(tmp_path / "a.png"))
    assert "OPENAI_API_KEY is not set" in capsys.readouterr().out
    assert api.requests == []
