"""In which mode and with which gradients models run."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Answer
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.gradients import ends_in_numbers, wants_gradients
from traindx.analysis.program.training.modes import (
    active_dropouts,
    is_mode_sure,
    last_mode,
    mode_dependent,
)
from traindx.analysis.program.training.phases import (
    evaluations,
    handed_models,
    training_passes,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

START = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return F.dropout(self.fc(x), 0.5, training=self.training)

class Chain(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 2), nn.Dropout())

net = Net()
"""


def _story(text: str) -> Story:
    return program_of(make_run(sources={"train.py": START + text})).stories[0]


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("net(x)", Answer.YES),
        ("net.eval(); net(x)", Answer.NO),
        ("net.train(False); net(x)", Answer.NO),
        ("was = net.training; net.eval(); net.train(was); net(x)", Answer.YES),
        ("net.eval(); was = net.training; net.train(was); net(x)", Answer.NO),
        ("if flag: net.eval()\nnet(x)", Answer.UNKNOWN),
        ("nn.ModuleList([net]).eval(); net(x)", Answer.NO),
        ("chain = Chain(); chain.eval(); chain(x)", Answer.NO),
    ],
)
def test_mode_of_a_pass(text: str, mode: Answer) -> None:
    passes = [d for d in _story(text).does(Do.FORWARD) if not d.event.within]
    assert [d.event.is_training for d in passes] == [mode]


def test_functions_and_layers_that_depend_on_the_mode() -> None:
    story = _story("chain = Chain(); chain(x); net(x)")
    forwards = [d for d in story.does(Do.FORWARD) if not d.event.within]
    assert [mode_dependent(story, d.subject) for d in forwards] == [["Dropout"], ["dropout"]]


@pytest.mark.parametrize(
    ("text", "sure"),
    [("net(x)", True), ("prepare(net)\nnet(x)", False), ("for m in all: m.eval()\nnet(x)", False)],
)
def test_a_mode_may_be_set_out_of_sight(text: str, sure: bool) -> None:
    story = _story(text)
    forward = next(d for d in story.does(Do.FORWARD) if d.text == "net")
    assert forward.subject is not None
    assert is_mode_sure(story, forward.subject, forward.event) is sure


def test_what_set_the_mode_last() -> None:
    story = _story("net.eval(); net.train(); net(x)")
    forward = next(d for d in story.does(Do.FORWARD) if not d.event.within)
    mode = last_mode(story, forward.subject, forward.event)
    assert mode is not None and mode.do is Do.TRAIN_MODE


def test_dropout_that_does_not_follow_the_mode() -> None:
    always = START.replace(", training=self.training", "") + "net.eval(); net(x)"
    story = program_of(make_run(sources={"train.py": always})).stories[0]
    assert [o.name for _, o in active_dropouts(story)] == ["dropout"]
    assert not list(active_dropouts(_story("net.eval(); net(x)")))


PHASES = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for phase in ("train", "val"):
        for x, y in loaders[phase]:
            loss = F.cross_entropy(net(x), y)
            if phase == "train":
                loss.backward()
                optimizer.step()
"""


def test_one_loop_that_trains_and_validates_in_turn() -> None:
    story = _story(PHASES)
    (found,) = evaluations(story)
    assert found.split == "validation"
    assert all(d.event.gradients is Answer.YES for d in found.passes)
    assert {e.node for e, _ in training_passes(story)} == {found.forward.event.node}


ATTACK = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    (slope,) = torch.autograd.grad(F.cross_entropy(net(x), y), x)
    harder = (x + slope.sign()).detach()
    F.cross_entropy(net(harder), y).backward()
    optimizer.step()
"""


def test_a_pass_behind_a_detach_is_no_training_pass() -> None:
    passes = [e for e, _ in training_passes(_story(ATTACK))]
    assert {e.location.line for e in passes} == {
        _story(ATTACK).does(Do.BACKWARD)[0].event.location.line
    }


def test_a_pass_whose_output_is_indexed_by_a_held_out_mask() -> None:
    (found,) = evaluations(_story("with torch.no_grad():\n    a = F.mse_loss(net(x)[val_mask], y)"))
    assert (found.split, found.form) == ("validation", "pass")


@pytest.mark.parametrize(
    ("context", "gradients"),
    [
        ("torch.no_grad()", Answer.NO),
        ("torch.autocast('cuda')", Answer.YES),
        ("evaluating(net)", Answer.UNKNOWN),
        ("accelerator.accumulate(net)", Answer.YES),
    ],
)
def test_gradients_in_a_context(context: str, gradients: Answer) -> None:
    story = _story(f"with {context}:\n    net(x)")
    passes = [d for d in story.does(Do.FORWARD) if not d.event.within]
    assert passes[-1].event.gradients is gradients


def test_a_decorator_out_of_sight_may_switch_gradients() -> None:
    story = _story("@frozen\ndef score():\n    return net(x)\nscore()")
    passes = [d for d in story.does(Do.FORWARD) if not d.event.within]
    assert passes[0].event.gradients is Answer.UNKNOWN


@pytest.mark.parametrize(
    ("use", "is_wasted"),
    [
        ("net(x).argmax(1)", True),
        ("F.mse_loss(net(x), y).item()", True),
        ("net(x).shape[1]", False),
        ("keep(net(x))", False),
        ("(net(x) * 2).sum()", False),
    ],
)
def test_outputs_that_end_in_numbers(use: str, is_wasted: bool) -> None:
    story = _story(f"print({use})")
    forward = next(d for d in story.does(Do.FORWARD) if not d.event.within)
    assert forward.event.result is not None
    assert ends_in_numbers(story, forward.event.result) is is_wasted


def test_gradients_are_wanted() -> None:
    assert wants_gradients(_story("x.requires_grad = True").events)
    assert not wants_gradients(_story("net(x)").events)


def test_only_models_are_handed_on_with_a_mode() -> None:
    text = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width, self.fc = width, nn.Linear(4, 2)
net = Net(options.width)
net.eval()
fit(net, options.width)
"""
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    call = next(e for e in story.events if len(e.args) == 2 and e.name == "()")
    assert [type(model).__name__ for model, _ in handed_models(story, call)] == ["Instance"]


@pytest.mark.parametrize(("handed", "mode"), [("mode", Answer.NO), ("", Answer.YES)])
def test_eval_is_a_train_of_its_own(handed: str, mode: Answer) -> None:
    text = f"""
import torch
from torch import nn

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout()

    def train(self, mode=True):
        return super().train({handed})

    def forward(self, x):
        return self.drop(x)

model = Own()
model.eval()
model(torch.ones(2))
"""
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert story.does(Do.FORWARD)[0].event.is_training is mode
