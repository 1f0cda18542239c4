"""Questions that were once answered wrongly about sound programs of others."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Answer, Result
from traindx.analysis.program.training.augmentation import is_added_for_training
from traindx.analysis.program.training.checkpoints import kept_by_reference
from traindx.analysis.program.training.data import random_transform
from traindx.analysis.program.training.freezing import is_ever_frozen
from traindx.analysis.program.training.gradients import Cut, cut_of
from traindx.analysis.program.training.initialisation import draws, is_rescaled
from traindx.analysis.program.training.kinds import Kind, kind_made_by
from traindx.analysis.program.training.ownership import collected_in_vain
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.restoration import left_out
from traindx.examples import make_run

START = """
import torch
from torch import nn
from typing import cast
net = nn.Linear(4, 2)
"""


def _story(text: str) -> Story:
    return program_of(make_run(sources={"t.py": START + text})).stories[0]


def test_a_cast_gives_back_what_it_is_given() -> None:
    story = _story("seen(cast(nn.Module, net), net)")
    first, second = story.events[-1].args
    assert first is second


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("torch.optim.lr_scheduler.StepLR", Kind.SCHEDULER),
        ("torch.optim.lr_scheduler._format_param", None),
        ("torch.optim.SGD", Kind.OPTIMIZER),
        ("torch.optim.swa_utils.update_bn", None),
    ],
)
def test_a_function_of_torch_makes_no_optimizer(name: str, kind: Kind | None) -> None:
    assert kind_made_by(name) is kind


@pytest.mark.parametrize(
    ("given", "dtype"), [("None", None), ("'cpu'", "int8"), ("torch.float16", "float16")]
)
def test_a_type_that_is_not_known_is_none(given: str, dtype: str | None) -> None:
    story = _story(f"seen(torch.zeros(2, dtype=torch.int8).to({given}))")
    found = story.dtypes.of(story.events[-1].args[0])
    assert (None if found is None else found.dtype) == dtype


def test_a_length_takes_nothing_but_a_shape() -> None:
    made = _story("seen(len(net(x)))").events[-1].args[0]
    assert isinstance(made, Result) and cut_of(made) is Cut.SHAPE


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("net.weight = nn.Parameter(w, requires_grad=False)", Answer.YES),
        ("net.weight = nn.Parameter(w)", Answer.NO),
    ],
)
def test_a_parameter_without_gradients_freezes(line: str, answer: Answer) -> None:
    story = _story(f"{line}\nseen(net)")
    assert is_ever_frozen(story, story.events[-1].args[0]) is answer


@pytest.mark.parametrize(
    ("use", "is_other"), [("x @ w", False), ("x @ (w / 8)", True), ("x @ normalised(w)", True)]
)
def test_a_weight_that_is_used_at_another_scale(use: str, is_other: bool) -> None:
    story = _story(f"w = nn.Parameter(torch.randn(64, 32))\ny = {use}")
    (draw,) = draws(story)
    assert is_rescaled(story, draw.owner) is is_other


@pytest.mark.parametrize(("put", "count"), [("name", 0), ("p", 1)])
def test_names_are_no_parameters(put: str, count: int) -> None:
    text = f"""
held, others = [], []
for name, p in net.named_parameters():
    held.append(p)
    others.append({put})
optimizer = torch.optim.SGD(held, lr=0.1)
"""
    assert len(collected_in_vain(_story(text))) == count


RESUMED = """
import os
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
if args.lars:
    from apex.parallel.LARC import LARC
    optimizer = LARC(optimizer)
start = 0
if args.resume:
    state = torch.load(args.resume)
    start = state["epoch"]
    net.load_state_dict(state["net"])
    {load}
for epoch in range(start, 9):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    torch.save({{"epoch": epoch, "net": net.state_dict(){save}}}, "last.pt")
"""


def test_one_of_two_optimizers_is_restored() -> None:
    text = RESUMED.format(
        load="optimizer.load_state_dict(state['o'])", save=", 'o': optimizer.state_dict()"
    )
    run = make_run(sources={"t.py": START + text})
    assert not [f for s in program_of(run).stories for f in left_out(program_of(run), s)]


BY_PHASE = """
from torchvision import transforms
steps = []
if {test}:
    steps.append(transforms.RandomHorizontalFlip())
seen(steps)
"""


@pytest.mark.parametrize(("test", "is_for_it"), [("mode == 'train'", True), ("args.flips", False)])
def test_a_transform_of_training(test: str, is_for_it: bool) -> None:
    story = _story(BY_PHASE.format(test=test))
    made = [e.result for e in story.events if e.result is not None and random_transform(e.result)]
    assert [is_added_for_training(story, m) for m in made[:1]] == [is_for_it]


def test_a_table_of_states_is_kept_by_no_key() -> None:
    text = """
optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}
def states():
    return {p: o.state_dict() for p, o in optimizers.items()}
for x, y in loader:
    nn.functional.mse_loss(net(x), y).backward()
    for o in optimizers.values():
        o.step()
    if done(x):
        write(states())
"""
    assert not kept_by_reference(_story(text))
