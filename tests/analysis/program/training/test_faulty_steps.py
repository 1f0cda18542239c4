"""What spoils a training step: lost history, old gradients, frozen weights, overwritten tensors."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.checkpoints import saves_in_every_step
from traindx.analysis.program.training.ownership import frozen_whole
from traindx.analysis.program.training.pairing import broadcast_losses
from traindx.analysis.program.training.program import each_place, program_of
from traindx.analysis.program.training.restoration import bare_weights
from traindx.analysis.program.training.saved_tensors import all_overwritten
from traindx.analysis.program.training.seeds import timed_algorithms
from traindx.analysis.program.training.severance import severed_losses
from traindx.analysis.program.training.updates import updates_on_old_gradients
from traindx.examples import template

step = template(
    """
import torch
from torch import nn

{before}
model = nn.Linear(4, 1)
{after}
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(first, 9):
    for x, y in loader:
        {clear}
        loss = nn.functional.mse_loss(model(x), {target})
        {learn}
        opt.step()
        {end}
""",
    before="", after="", clear="opt.zero_grad()", target="y", learn="loss.backward()", end="pass",
)  # fmt: skip
FREEZE = "for p in model.parameters():\n    p.requires_grad = False"
SAVE = "torch.save(model.state_dict(), 'a.pt')"
LOAD = "model.load_state_dict(torch.load('a.pt'))"
ASKED = "torch.use_deterministic_algorithms(True)"
TIMED = "torch.backends.cudnn.benchmark = True"


def test_a_sound_step() -> None:
    for question in (severed_losses, updates_on_old_gradients, frozen_whole, broadcast_losses,
                     all_overwritten, saves_in_every_step, timed_algorithms):  # fmt: skip
        assert not [f for s in program_of(step()).stories for f in question(s)]


@pytest.mark.parametrize(
    ("learn", "how"),
    [
        ("loss.detach().requires_grad_().backward()", [".detach()"]),
        ("loss.requires_grad = True; loss.backward()", [""]),
    ],
)
def test_a_loss_that_lost_its_model(learn: str, how: list[str]) -> None:
    found = each_place(step(learn=learn), severed_losses, lambda s: s.backward.event.node)
    assert [severed.how for severed in found] == how


def test_gradients_that_are_not_cleared() -> None:
    pairs = list(
        each_place(step(clear="pass"), updates_on_old_gradients, lambda p: p[1].event.node)
    )
    assert len(pairs) == 1


def test_a_model_that_is_frozen_whole() -> None:
    found = list(each_place(step(after=FREEZE), frozen_whole, lambda frozen: frozen[0].event.node))
    assert len(found) == 1


def test_a_column_against_a_row() -> None:
    run = step(before="flat = torch.randn(32)", target="flat")
    assert len(list(each_place(run, broadcast_losses, lambda b: b.loss.event.node))) == 1


@pytest.mark.parametrize(("change", "views"), [("h += 1", [False]), ("h = h + 1", [])])
def test_a_tensor_that_backward_needs(change: str, views: list[bool]) -> None:
    learn = f"h = model(x).sigmoid(); {change}; h.sum().backward()"
    found = each_place(step(learn=learn), all_overwritten, lambda written: written.change.node)
    assert [written.is_view for written in found] == views


@pytest.mark.parametrize(("end", "counts"), [(SAVE, [1]), (f"if epoch == 3: {SAVE}", [])])
def test_a_checkpoint_in_every_step(end: str, counts: list[int]) -> None:
    saved = each_place(step(end=end), saves_in_every_step, lambda save: save[0].node)
    assert [count for _, count in saved] == counts


@pytest.mark.parametrize(("after", "count"), [(LOAD, 1), ("", 0)])
def test_weights_alone_to_resume_from(after: str, count: int) -> None:
    stories = program_of(step(after=after, end=SAVE)).stories
    assert len([s for s in stories if bare_weights(s) is not None]) == count


@pytest.mark.parametrize(("before", "count"), [(f"{ASKED}\n{TIMED}", 1), (TIMED, 0)])
def test_algorithms_by_timing_in_a_deterministic_program(before: str, count: int) -> None:
    run = step(before=before)
    assert len(list(each_place(run, timed_algorithms, lambda event: event.node))) == count
