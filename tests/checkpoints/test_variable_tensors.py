"""Tensors of PyTorch, in memory and on devices."""

from __future__ import annotations

import pytest

from tests.checkpoints.notebook import Notebook

torch = pytest.importorskip("torch", reason="needs torch, of its CPU index")


def test_tensors_are_restored_in_the_same_objects(notebook: Notebook) -> None:
    notebook.person(
        "import torch\n"
        "x = torch.arange(6.0)\n"
        "held = [x]\n"
        "weight = torch.ones(2, requires_grad=True)\n"
        "model = torch.nn.Linear(2, 1, bias=False)\n"
        "torch.nn.init.ones_(model.weight)\n"
        "ids = [id(each) for each in (x, weight, model, model.weight)]"
    )
    notebook.agent("x += 1\nweight.data.zero_()\ntorch.nn.init.zeros_(model.weight)")
    notebook.rewind(1)
    values = notebook.variables
    assert values["x"] is values["held"][0]
    assert values["x"].tolist() == [0, 1, 2, 3, 4, 5]
    assert values["weight"].tolist() == [1, 1]
    assert values["model"].weight.tolist() == [[1, 1]]
    same = [values[name] for name in ("x", "weight", "model")] + [values["model"].weight]
    assert [id(each) for each in same] == values["ids"]


def test_a_tensor_on_a_device_is_named_and_not_copied(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.person("import torch\nx = torch.empty(10 << 30, device='meta')\nrows = [1]")
    for name in ("clone", "cpu", "numpy", "detach"):
        monkeypatch.setattr(torch.Tensor, name, lambda *_: pytest.fail("it was copied"))
    notebook.agent("x; rows.append(2)")
    rows = {row.name: row for row in notebook.history.preview(1)}
    assert rows["x"].outcome == "not kept"
    assert rows["x"].reason == "its data is on the device 'meta'"
    assert rows["rows"].outcome == "restored"
