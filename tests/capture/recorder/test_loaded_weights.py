"""Weights that are loaded: the names that fit, and those that do not."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from traindx.capture import recorder
from traindx.capture.recorder.loaded_weights import loaded


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def told(path: Path) -> list[dict[str, Any]]:
    lines = (line for file in path.glob("rank*.jsonl") for line in file.read_text().splitlines())
    return [r for r in map(json.loads, lines) if r["k"] == "loaded"]


def test_loads_before_and_during_training_are_told(tmp_path: Path) -> None:
    session = recorder.start(str(tmp_path))
    try:
        net, renamed = model(), {f"module.{k}": v for k, v in model().state_dict().items()}
        result = net.load_state_dict(renamed, strict=False)
        assert len(result.missing_keys) == 4
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            net(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        net.load_state_dict(net.state_dict())
        with pytest.raises(RuntimeError, match="Missing key"):
            net.load_state_dict(renamed)
    finally:
        session.finish()
        assert session.hooks is not None
        session.hooks.remove()
    assert nn.Module.load_state_dict.__module__ == "torch.nn.modules.module"
    first, second = told(tmp_path)
    assert (first["matched"], first["missing"], first["renamed"]) == (0, 4, 4)
    assert first["brings"][0] == "module.0.weight"
    assert first["place"]["file"].endswith("test_loaded_weights.py")
    assert (second["matched"], second["missing"], second["step"]) == (4, 0, 3)


@pytest.mark.parametrize(
    ("ours", "given", "renamed"),
    [
        ("model.encoder.fc.weight", "fc.weight", 1),
        ("fc.weight", "_orig_mod.module.fc.weight", 1),
        ("head.weight", "fc.weight", 0),
        ("fc.weight", "fc.bias", 0),
    ],
)
def test_only_what_comes_before_a_name_may_differ(ours: str, given: str, renamed: int) -> None:
    result = SimpleNamespace(missing_keys=[ours], unexpected_keys=[given])
    record = loaded(model(), {given: 0}, result)
    assert record is not None
    assert record["renamed"] == renamed


def test_what_cannot_be_counted_is_not_told() -> None:
    assert loaded(model(), iter(()), None) is None
