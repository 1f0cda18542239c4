"""Where gradients flow, what cuts them off, and what a loop keeps of its last turn's graph."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Answer, Value
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.gradients import (
    Cut,
    cuts_before,
    has_history,
    runs_reached,
    terms_of,
)
from traindx.analysis.program.training.graphs import Graphs, summed
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

LOOP = """
import torch
from torch import nn

net = nn.Linear(4, 2)
state = None

def helper(values):
    return values.argmax(1).float()

for x, y in loader:
    out = net(x)
    {line}
    loss.backward()
"""


def _story(line: str) -> Story:
    return program_of(make_run(sources={"t.py": LOOP.format(line=line)})).stories[0]


def _loss(line: str) -> Value:
    subject = _story(line).does(Do.BACKWARD)[0].subject
    assert subject is not None
    return subject


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("loss = (out - y).pow(2).mean()", Answer.YES),
        ("loss = out.detach().mean()", Answer.NO),
        ("loss = out.mean() if y.sum() > 0 else out.detach().mean()", Answer.UNKNOWN),
        ("loss = fit(out.detach())", Answer.UNKNOWN),
        ("loss = torch.tensor(out.mean().item(), requires_grad=True)", Answer.NO),
        ("loss = (torch.zeros(2, requires_grad=True) - y).sum()", Answer.YES),
        ("loss = out + (out.round() - out).detach()", Answer.YES),
    ],
)
def test_history(line: str, known: Answer) -> None:
    assert has_history(_loss(line)) is known


@pytest.mark.parametrize(
    ("line", "how"),
    [
        ("loss = out.detach().mean()", Cut.DETACHED),
        ("loss = helper(out).mean()", Cut.FLAT),
        ("loss = torch.tensor(helper(out).tolist())", Cut.FLAT),
        ("with torch.no_grad():\n        loss = net(x).mean()", Cut.UNRECORDED),
        ("torch.set_grad_enabled(False); loss = net(x).mean()", Cut.UNRECORDED),
    ],
)
def test_the_first_cut(line: str, how: Cut) -> None:
    assert cuts_before(_loss(line))[0][0] is how


def test_a_context_takes_its_switch_back() -> None:
    line = "with torch.set_grad_enabled(False):\n        net(x)\n    loss = net(x).mean()"
    assert has_history(_loss(line)) is Answer.YES


def test_a_switch_in_a_function_lasts() -> None:
    text = LOOP.format(line="loss = net(x).mean()").replace(
        "for x, y", "def measure():\n    torch.set_grad_enabled(False)\nmeasure()\nfor x, y"
    )
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    subject = story.does(Do.BACKWARD)[0].subject
    assert subject is not None and has_history(subject) is Answer.NO


def test_choices_of_choices_are_looked_at_once() -> None:
    choices = "\n    ".join(
        f"out = out if x[{n}] else (out + y if y[{n}] else y)" for n in range(60)
    )
    assert has_history(_loss(f"{choices}\n    loss = out.mean()")) is Answer.UNKNOWN


def test_layers_that_are_reached() -> None:
    assert len(runs_reached(_loss("loss = (net(x) + net(y).detach()).sum()"))) == 1


def test_terms() -> None:
    assert len(terms_of(_loss("loss = out.mean() + 0.5 * y.mean() - x.sum()"))) == 3


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("state = out if state is None else state + out; loss = state.sum()", 1),
        ("state = torch.relu(out) + (state or 0); loss = state.sum()", 0),
        ("loss = (out + prev).sum(); prev = out", 1),
        ("loss = (out + prev).sum(); prev = out.detach()", 0),
    ],
)
def test_what_is_carried_to_the_next_turn(line: str, count: int) -> None:
    text = LOOP.format(line=line).replace("state = None", "state = None\nprev = 0")
    graphs = Graphs(program_of(make_run(sources={"t.py": text})).stories[0])
    _, backward, _ = next(iter(graphs.pairs()))
    assert len(graphs.carried(backward)) == count


@pytest.mark.parametrize(("line", "is_sum"), [
    ("total = total + 0.1 * out", True),
    ("total += out.sum()", True),
    ("total = torch.tanh(torch.mm(out, weight) + total)", False),
    ("total = model(total)", False),
])  # fmt: skip
def test_a_running_total_is_a_sum(line: str, is_sum: bool) -> None:
    text = f"import torch\ntotal = 0\nfor x in loader:\n    out = model(x)\n    {line}"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    first, second = [a.value for a in story.execution.assignments if a.name == "total"][1:]
    assert any(v is first for v in summed(second)) is is_sum
