"""Which parameters a loop over all of them comes to."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.covered_parameters import (
    covered_parameters,
    is_given_to_all,
)
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

PROGRAM = """
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for name, p in net.named_parameters():
    {body}
"""


def ask(body: str) -> tuple[int | None, bool | None]:
    text = PROGRAM.format(body=body)
    stories = program_of(make_run(sources={"train.py": text})).stories
    event = next(e for story in stories for e in story.events if e.name == "requires_grad")
    assert event.receiver is not None
    found = covered_parameters(event, event.receiver)
    given = is_given_to_all(event, event.receiver, event.args[0])
    return None if found is None else len(found), given


@pytest.mark.parametrize(
    ("body", "covered", "given"),
    [
        ("p.requires_grad = False", 4, False),
        ("if 'weight' in name: p.requires_grad = False", 2, None),
        ("if name.startswith('2.'): p.requires_grad = False", 2, None),
        ("if p.dim() > 1: p.requires_grad = False", 2, None),
        ("if 'head' not in name: p.requires_grad = False", 4, False),
        ("p.requires_grad = name.startswith('head')", 4, False),
        ("p.requires_grad = name.endswith('bias')", 4, None),
        ("if chosen(name): p.requires_grad = False", None, None),
    ],
)
def test_covered(body: str, covered: int | None, given: bool | None) -> None:
    assert ask(body) == (covered, given)
