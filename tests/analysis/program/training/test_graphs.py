"""Graphs that are freed, carried on or emptied of."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.graphs import freed_graphs, is_cleared, is_emptied
from traindx.analysis.program.training.kept_graphs import kept_graphs
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.saved_tensors import updated_weights
from traindx.examples import make_run

LOOP = """
import torch
from torch import nn
body, a, b = nn.Linear(8, 4), nn.Linear(4, 3), nn.Linear(4, 1)
opt = torch.optim.Adam([*body.parameters(), *a.parameters(), *b.parameters()])
only_a = torch.optim.Adam(a.parameters())
kept = []
for x, y in loader:
    h = torch.relu(body(x))
    {lines}
"""


@pytest.mark.parametrize(
    ("lines", "is_freed"),
    [
        ("a(h).mean().backward(); b(h).mean().backward()", True),
        ("for loss in (a(h).mean(), b(h).mean()): loss.backward()", True),
        ("a(h).mean().backward(retain_graph=True); b(h).mean().backward()", False),
        ("a(h).mean().backward(); b(h.detach()).mean().backward()", False),
        ("a(body(x)).mean().backward(); b(body(x)).mean().backward()", False),
        ("p, q = far(h); p.mean().backward(); q.mean().backward()", False),
        ("if early: a(h).mean().backward()\n    b(h).mean().backward()", False),
    ],
)
def test_a_graph_that_is_freed(lines: str, is_freed: bool) -> None:
    story = program_of(make_run(sources={"t.py": LOOP.format(lines=lines)})).stories[0]
    assert bool(list(freed_graphs(story))) is is_freed


@pytest.mark.parametrize(
    ("lines", "is_changed"),
    [
        ("l = a(h).mean(); only_a.step(); l.backward()", True),
        ("l = a(h.detach()).mean(); only_a.step(); l.backward()", False),
        ("l = b(h).mean(); only_a.step(); l.backward()", False),
        ("only_a.step(); l = a(h).mean(); l.backward()", False),
    ],
)
def test_weights_that_backward_needs(lines: str, is_changed: bool) -> None:
    story = program_of(make_run(sources={"t.py": LOOP.format(lines=lines)})).stories[0]
    assert bool(list(updated_weights(story))) is is_changed


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("kept.append(h)", (False, False)),
        ("kept += [h]", (False, False)),
        ("kept.append(h)\n    if len(kept) > 9: kept.pop(0)", (True, False)),
        ("kept.append(h)\n    kept.clear()", (True, True)),
    ],
)
def test_what_is_taken_from_a_list(lines: str, expected: tuple[bool, bool]) -> None:
    story = program_of(make_run(sources={"t.py": LOOP.format(lines=lines)})).stories[0]
    held = next(e.receiver for e in story.events if e.name == ".append")
    assert held is not None
    assert (is_emptied(story, held), is_cleared(story, held)) == expected


@pytest.mark.parametrize(
    ("lines", "is_kept"),
    [
        ("total = total + loss", True),
        ("mean = loss if mean is None else 0.9 * mean + 0.1 * loss", True),
        ("kept.append(loss)", True),
        ("kept += [loss]", True),
        ("kept.append({'loss': loss, 'x': 1})", True),
        ("kept.append({'loss': loss.item(), 'x': 1})", False),
        ("total = total + loss.detach()", False),
        ("change = loss - last; last = loss", False),
        ("kept.append(loss)\n    if len(kept) > 9: kept.pop(0)", False),
    ],
)
def test_graphs_that_are_kept(lines: str, is_kept: bool) -> None:
    first = "loss = nn.functional.mse_loss(h, y)\n    loss.backward()\n    "
    begin = "kept, total, last = [], 0, 0\nmean = None"
    text = LOOP.format(lines=first + lines).replace("kept = []", begin)
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert bool(list(kept_graphs(story))) is is_kept
