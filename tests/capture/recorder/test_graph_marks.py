"""Marks that die with the graph of their step, and clips that come too late."""

from __future__ import annotations

import torch
from torch import nn

from traindx.capture.recorder import graph
from traindx.capture.recorder.current_step import CurrentStep
from traindx.capture.recorder.graph_marks import APART, GraphMarks
from traindx.capture.recorder.later import Later


def steps(count: int, keep: str) -> tuple[int, int]:
    """Train for some steps and return how many graphs of earlier ones are alive."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    marks, total, kept = GraphMarks(), torch.zeros(()), []
    for step in range(count):
        loss = model(torch.randn(3, 4)).square().mean()
        marks.mark(step, graph.walk(loss))
        loss.backward()
        total = total + (loss if keep == "sum" else loss.detach())
        kept.append(loss if keep == "list" else loss.item())
    return marks.kept(count - 1)


def test_a_sum_or_a_list_keeps_every_graph() -> None:
    assert steps(8, "sum") == steps(8, "list") == (8 - APART, 8 - APART)


def test_numbers_keep_none() -> None:
    assert steps(8, "") == (0, 8 - APART)


def clip(*, after_backward: bool, after_update: bool, in_closure: bool = False) -> bool:
    """Return whether a clip counts as in time."""
    step, weight = CurrentStep(), nn.Parameter(torch.ones(2))
    if after_backward:
        step.losses.values.append(Later(torch.ones(())))
        step.losses.is_closure = in_closure
    step.updates([weight])
    if after_update:
        with torch.no_grad():
            weight.add_(1.0)
    step.clips(Later(torch.ones(())), 1.0)
    assert step.is_clipped is (step.late_clip is None)
    return step.is_clipped


def test_a_clip_is_in_time_between_backward_and_update() -> None:
    assert clip(after_backward=True, after_update=False)
    assert not clip(after_backward=False, after_update=False)
    assert not clip(after_backward=True, after_update=True)
    assert clip(after_backward=True, after_update=True, in_closure=True)
