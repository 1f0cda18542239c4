"""What rules about recordings ask of the source: widths, collectives, hoards, edges, fetching."""

from __future__ import annotations

import pytest

from traindx.analysis.program.program_words import mentions, writes_minus_infinity
from traindx.analysis.program.training.edges import edged_operations
from traindx.analysis.program.training.hoards import hoard_of
from traindx.analysis.program.training.loaders import waits_for_examples
from traindx.analysis.program.training.program import Program, program_of
from traindx.analysis.program.training.rank_exchange import (
    brings_weights_together,
    gives_parts_of_data,
)
from traindx.analysis.program.training.widths import class_count
from traindx.examples import make_run


def program(text: str) -> Program:
    return program_of(make_run(sources={"train.py": text}))


@pytest.mark.parametrize(
    ("outputs", "count"),
    [
        ("nn.Linear(8, 1)(x)", 1),
        ("nn.Linear(8, 5)(x).float()", 5),
        ("nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3))(x)", 3),
        ("x.reshape(-1, 1)", 1),
        ("x.unsqueeze(1)", 1),
        ("x", None),
    ],
)
def test_classes_are_counted(outputs: str, count: int | None) -> None:
    text = f"import torch\nfrom torch import nn\nnn.functional.cross_entropy({outputs}, y)\n"
    (loss,) = program(text).results("cross_entropy")
    assert class_count(loss.operation.operands[0]) == count


@pytest.mark.parametrize(
    ("sent", "is_weights"),
    [
        ("for p in model.parameters():\n    dist.all_reduce(p.grad)", True),
        ("dist.broadcast(thing, 0)", True),
        ("dist.all_reduce(torch.tensor(1.0))", False),
        ("print(model)", False),
    ],
)
def test_weights_that_meet(sent: str, is_weights: bool) -> None:
    text = f"import torch\nimport torch.distributed as dist\n{sent}\n"
    assert any(map(brings_weights_together, program(text).stories)) is is_weights


def test_parts_of_data() -> None:
    text = (
        "from torch.utils.data.distributed import DistributedSampler\ns = DistributedSampler(d)\n"
    )
    assert gives_parts_of_data(program(text)) is not None
    assert gives_parts_of_data(program("print(1)")) is None


LOOP = """
import torch
optimizer = torch.optim.Adam(net.parameters())
seen = []
for batch in loader:
    loss = net(batch).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append({kept})
    {then}
"""


@pytest.mark.parametrize(
    ("kept", "then", "is_hoard"),
    [
        ("loss.detach()", "", True),
        ("loss.item()", "", False),
        ("loss.detach()", "seen.clear()", False),
    ],
)
def test_hoards(kept: str, then: str, is_hoard: bool) -> None:
    assert (hoard_of(program(LOOP.format(kept=kept, then=then))) is not None) is is_hoard


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("torch.sqrt(x)", 1),
        ("x.norm()", 1),
        ("torch.sqrt(x.clamp(min=1e-6))", 0),
        ("torch.sqrt(x + 1e-8)", 0),
        ("x.pow(2)", 0),
    ],
)
def test_edges(written: str, count: int) -> None:
    text = f"import torch\nx = torch.rand(3)\ny = {written}\n"
    assert len(list(edged_operations(program(text)))) == count


@pytest.mark.parametrize(
    ("body", "waits"),
    [
        ("return Image.open(self.paths[i])", True),
        ("return read(self.paths[i])", True),
        ("return self.items[i]", False),
    ],
)
def test_examples_that_are_waited_for(body: str, waits: bool) -> None:
    text = (
        "from PIL import Image\nfrom torch.utils.data import Dataset\ndef read(path):\n    return Image.open(path)\n"
        f"class Photos(Dataset):\n    def __getitem__(self, i):\n        {body}\n"
    )
    assert waits_for_examples(program(text)) is waits


def test_words_of_a_program() -> None:
    run = make_run(sources={"train.py": "from transformers import AutoTokenizer\n# frozen\n"})
    assert mentions(run, "tokenizer")
    assert not mentions(run, "frozen")  # a comment is no part of the program
    assert not writes_minus_infinity(run)
    for text in ("m = float('-inf')", "m = -float('inf')", "import torch\nm = -torch.inf"):
        assert writes_minus_infinity(make_run(sources={"train.py": text}))
