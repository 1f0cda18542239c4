"""A written `repro.py` fails as the step did, in a process of its own."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from traindx.capture.recorder.caught import type_name  # noqa: E402
from traindx.capture.recorder.incident_files import keep  # noqa: E402
from traindx.capture.recorder.reproduction import write  # noqa: E402

LAYERS = '''
import math

import torch
from torch import nn

SCALE = 4


class Block(nn.Module):
    """A part in another file."""

    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)

    def forward(self, x):
        return x + self.layer(x) / math.sqrt(SCALE)
'''

MODEL = """
import argparse
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from repro_layers import Block

args = argparse.Namespace(words=10, hidden=8)
sharpness = 1.0
print("never taken along")


@dataclass
class Config:
    words: int
    hidden: int = 8


config = Config(words=args.words)


def squash(x):
    return torch.log(torch.softmax(x * sharpness, -1))


class Tagger(nn.Module):
    def __init__(self, config, classes, *, dropout=0.1):
        super().__init__()
        self.embed = nn.Embedding(config.words, config.hidden)
        self.blocks = nn.ModuleList([Block(config.hidden) for _ in range(2)])
        self.norm = nn.BatchNorm1d(config.hidden)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(config.hidden, classes)

    def forward(self, ids, mask=None):
        x = self.embed(ids).mean(1)
        for block in self.blocks:
            x = block(x)
        return squash(self.head(self.drop(self.norm(x))))


class Twice(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = nn.Linear(n, n)

    def forward(self, x):
        return self.n(x)


class Unknown(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layer = nn.Linear(n, n)

    def forward(self, x):
        return self.layer(x)


def make(n):
    return Unknown(n)


model = Tagger(config, 3, dropout=0.2)
pair = Twice(3), Twice(4)
"""

RUN_ALL = """
import json, runpy, sys
told = {}
for path in sys.argv[1:]:
    try:
        runpy.run_path(path, run_name="__main__")
        told[path] = ""
    except BaseException as error:
        told[path] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""


@pytest.fixture
def user(tmp_path, monkeypatch):
    (tmp_path / "repro_layers.py").write_text(LAYERS)
    (tmp_path / "repro_model.py").write_text(MODEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("repro_model")
    for name in ("repro_model", "repro_layers"):
        del sys.modules[name]


def incident(tmp_path, name, model, *args, error=None, **kwargs):
    """Fail as a user would, and write what the recorder writes."""
    state, error_type = torch.get_rng_state(), error
    try:
        model(*args, **kwargs)
    except Exception as raised:
        error_type = type_name(type(raised)) if error is None else error
    kept = keep(str(tmp_path), name, batch=(args, kwargs), rng_state=state, extra={})
    forward = SimpleNamespace(name="model", module=model, args=args, kwargs=kwargs)
    before = torch.get_rng_state()
    is_written = write(str(tmp_path / kept), forward, error_type=error_type or "")
    assert torch.equal(before, torch.get_rng_state())
    assert is_written == (tmp_path / kept / "repro.py").exists()
    return tmp_path / kept / "repro.py" if is_written else None


def test_the_script_fails_the_same_way(tmp_path, user, capsys):
    stack = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1, bias=False),
        torch.nn.Sequential(torch.nn.BatchNorm2d(4), torch.nn.GELU(approximate="tanh")),
        torch.nn.Flatten(),
        torch.nn.Linear(10, 2),
    ).to(torch.bfloat16)
    index = incident(tmp_path, "index", user.model, torch.tensor([[1, 2], [3, 10]]), mask=None)
    shape = incident(tmp_path, "shape", stack, torch.zeros(2, 3, 4, 4, dtype=torch.bfloat16))
    user.sharpness = 1e6
    user.model.norm.eval()
    nan = incident(tmp_path, "nan", user.model, torch.tensor([[1, 2], [3, 4]]))
    assert index and shape and nan
    command = [sys.executable, "-c", RUN_ALL, str(index), str(shape), str(nan)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path.parent, check=True)
    told = json.loads(done.stdout)
    assert told[str(index)].startswith("IndexError: index out of range")
    assert told[str(shape)].startswith("RuntimeError: mat1 and mat2 shapes")
    assert told[str(nan)] == "FloatingPointError: the output is not finite"
    source = index.read_text()
    assert "Twice" not in source and "never taken along" not in source
    assert "Block" in source and "config = Config(words=args.words)" in source
    assert str(tmp_path) not in source


def test_nothing_is_written_in_doubt(tmp_path, user):
    fine = torch.nn.Linear(3, 3)
    assert incident(tmp_path, "in-the-loss", fine, torch.ones(1, 3), error="IndexError") is None
    assert (
        incident(tmp_path, "memory", fine, torch.ones(2, 4), error="torch.OutOfMemoryError") is None
    )
    assert incident(tmp_path, "finite", fine, torch.ones(1, 3)) is None
    assert incident(tmp_path, "two-calls", user.Twice(3), torch.ones(1, 4)) is None
    assert incident(tmp_path, "unknown", user.make(3), torch.ones(1, 4)) is None

    class Local(torch.nn.Linear):
        pass

    assert incident(tmp_path, "local", Local(3, 3), torch.ones(1, 4)) is None
    odd = torch.nn.Linear(3, 3)
    assert incident(tmp_path, "object", odd, object()) is None
    assert not list(tmp_path.glob("incidents/*/model.safetensors"))
