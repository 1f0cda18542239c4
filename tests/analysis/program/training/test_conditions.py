"""Which conditions cannot hold at once, however they are written."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.conditions import contradicts
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

PROGRAM = """
import torch
scaler = torch.amp.GradScaler() if torch.cuda.is_available() else None
if {first}:
    one()
{branch} {second}:
    other()
"""


def _ask(first: str, second: str, branch: str = "if") -> bool:
    text = PROGRAM.format(first=first, second=second, branch=branch)
    (story,) = program_of(make_run(sources={"train.py": text})).stories
    named = {getattr(e.receiver, "name", ""): e for e in story.events if e.name == "()"}
    pairs = [(a, b) for a in named["one"].guards for b in named["other"].guards]
    return any(contradicts(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("scaler is not None", "scaler is None", True),
        ("scaler", "scaler is None", True),
        ("scaler", "not scaler", True),
        ("scaler is not None", "not scaler", True),
        ("args.amp", "not args.amp", True),
        ("mode == 'train'", "mode == 'val'", True),
        ("mode == 'train'", "mode != 'train'", True),
        ("size > 4", "size <= 4", True),
        ("scaler is not None", "scaler", False),
        ("args.amp", "args.ddp", False),
        ("mode == 'train'", "other == 'val'", False),
        ("draw() > 0.5", "draw() <= 0.5", False),
    ],
)
def test_contradictions(first: str, second: str, expected: bool) -> None:
    assert _ask(first, second) is expected
