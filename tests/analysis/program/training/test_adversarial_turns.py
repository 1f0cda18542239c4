"""Whose losses reach only the network of another optimizer."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.adversarial_turns import lost_turns
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

TEXT = """
import torch

def step(G, D, real, noise, opt_g, opt_d):
    fake = G(noise)
    (D(fake.detach()).mean() - D(real).mean()).backward()
    opt_d.step()
    (-D({sample}).mean()).backward()
    opt_g.step()
"""


@pytest.mark.parametrize(("sample", "cuts"), [("fake.detach()", 1), ("fake", 0)])
def test_lost_turns(sample: str, cuts: int) -> None:
    turns = [t for s in program_of(script(TEXT, sample=sample)).stories for t in lost_turns(s)]
    assert [len(turn.cuts) for turn in turns] == [1] * cuts
