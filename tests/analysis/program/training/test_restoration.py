"""What a resumed run does not get back, and best files that are written over."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.best_files import overwritten_best
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.restoration import asked_in_vain, left_out
from traindx.examples import make_run

PROGRAM = """
import torch
from torch import nn

a, b = nn.Linear(4, 4), nn.Linear(4, 1)
first, second = torch.optim.Adam(a.parameters()), torch.optim.Adam(b.parameters())
step, best = 0, 0.0
{load}
while step < 900:
    first.zero_grad()
    second.zero_grad()
    b(a(draw())).mean().backward()
    first.step()
    second.step()
    step += 1
    score = judge(a, b)
    {save}
"""
LOAD = """
held = torch.load("last.pt")
a.load_state_dict(held["a"])
b.load_state_dict(held["b"])
first.load_state_dict(held["first"])
step = held["step"]
"""
PARTS = '"a": a.state_dict(), "b": b.state_dict(), "first": first.state_dict()'


def _program(load: str, save: str):  # type: ignore[no-untyped-def]
    return program_of(make_run(sources={"t.py": PROGRAM.format(load=load, save=save)}))


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", {"second"}), (', "second": second.state_dict()', set()), (', "o": second', set())],
)
def test_left_out(more: str, expected: set[str]) -> None:
    program = _program(LOAD, f'torch.save({{{PARTS}, "step": step{more}}}, "last.pt")')
    [story] = program.stories
    found = {name for left in left_out(program, story) for name in left.value.names}
    assert found == expected


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        ('if "opt" in held: second.load_state_dict(held["opt"])', ["opt"]),
        ('if "second" in held: second.load_state_dict(held["second"])', []),
        ('second.load_state_dict(held.get("opt", {}))', ["opt"]),
        ('second.load_state_dict(held.get("opt", held["second"]))', []),
    ],
)
def test_asked_in_vain(ask: str, expected: list[str]) -> None:
    save = f'torch.save({{{PARTS}, "second": second.state_dict(), "step": step}}, "last.pt")'
    program = _program(LOAD + ask, save)
    assert sorted({asked.key for asked in asked_in_vain(program)}) == expected


@pytest.mark.parametrize(
    ("keep", "then", "expected"),
    [
        ("best = score", 'torch.save(a.state_dict(), "a.pt")', {"same file"}),
        ("best = score", 'torch.save(a.state_dict(), "last.pt")', set()),
        ("pass", "pass", {"never updated"}),
        ("pass", "best = score", {"always updated"}),
        ("pass", "best = max(best, score)", set()),
    ],
)
def test_overwritten_best(keep: str, then: str, expected: set[str]) -> None:
    save = f"""if score > best:
        {keep}
        torch.save(a.state_dict(), "a.pt")
    {then}"""
    [story] = _program("", save).stories
    assert {found.reason for found in overwritten_best(story)} == expected
