"""The operator's secrets appear in no log."""

from oh_jupyter.config import Settings
from oh_jupyter.events import CmdRunAction
from oh_jupyter.runtime import Runtime


def test_secrets_of_the_settings_are_masked(tmp_path, monkeypatch):
    monkeypatch.setenv("SESSION_API_KEY", "session-key-1")
    secrets = ["tok-123456", "passw0rd-x", "kernel-token-1", "session-key-1"]
    runtime = Runtime(
        Settings(
            workspace_dir=str(tmp_path),
            file_store="memory",
            file_store_web_hook_url="http://user:passw0rd-x@127.0.0.1:9/",
            file_store_web_hook_outbox=str(tmp_path / "outbox"),
            file_store_web_hook_headers={"Authorization": "Bearer tok-123456", "X": "short"},
            kernel_token="kernel-token-1",
        )
    )
    command = f"echo {' '.join(secrets)} and nothing else of a short text"
    runtime.submit_action(CmdRunAction(command), "user").result(60)
    runtime.events.flush()
    recorded = [str(vars(event)) for event in runtime.events.search()]
    written = [
        runtime.file_store.read(path)
        for path in runtime.file_store.list(f"sessions/{runtime.generation}/events")
    ]
    assert len(written) == len(recorded) == 2
    for text in recorded + written:
        assert not [secret for secret in secrets if secret in text]
        assert "nothing else of a short text" in text
    runtime.close()
    runtime.file_store.close(0)
