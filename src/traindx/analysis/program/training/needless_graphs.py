"""Evaluations that record graphs that nobody needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.values import Answer, Result, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import decorate, enclose, imports
from traindx.analysis.program.training.gradients import is_frozen, wants_gradients
from traindx.analysis.program.training.phases import LEARNS, HeldOutPass, Loop, evaluations
from traindx.analysis.program.training.program import Story


@dataclass(frozen=True, eq=False)
class NeedlessGraph:
    """A loop over held-out data that runs a model while gradients are recorded."""

    evaluation: HeldOutPass
    loop: Loop

    def patch(self) -> str | None:
        """Return the patch that switches gradients off, for the loop or for its function."""
        evaluation, site = self.evaluation, self.loop.run.site
        is_shared = bool(Loop(evaluation.story, self.loop.run).does(*LEARNS))
        if not imports(site, "torch") or is_shared:
            return None
        if evaluation.learns or site.module.function_of(site.node) is None:
            return enclose(site, "with torch.no_grad():")
        return decorate(site, "@torch.no_grad()")


def needless_graphs(story: Story) -> Iterator[NeedlessGraph]:
    """Yield the loops that evaluate with gradients on, unless a caller may switch them off."""
    if story.execution.function is not None and not story.does(Do.BACKWARD):
        return
    for evaluation in evaluations(story):
        if evaluation.loop is not None and _records(story, evaluation):
            yield NeedlessGraph(evaluation, evaluation.loop)


def _records(story: Story, evaluation: HeldOutPass) -> bool:
    """Tell whether every run of a pass builds a graph that nothing is done with."""
    loop, model = evaluation.loop, evaluation.forward.subject
    if loop is None or model is None or is_frozen(story, model):
        return False
    is_shared = bool(Loop(story, loop.run).does(*LEARNS))
    if wants_gradients(loop.events, is_shared=is_shared) or story.reads_gradients(loop.events):
        return False
    return all(_builds_graph(d) and not _is_dropped(story, d) for d in evaluation.passes)


def _builds_graph(forward: Deed) -> bool:
    result = forward.event.result
    is_inside = not isinstance(result, Result) or result.gradients is Answer.YES
    return forward.event.gradients is Answer.YES and is_inside


def _is_dropped(story: Story, forward: Deed) -> bool:
    """Tell whether the output is thrown away: a pass that only renews batch statistics."""
    result: Value | None = forward.event.result
    return forward.event.is_dropped or (result is not None and "_" in result.names)
