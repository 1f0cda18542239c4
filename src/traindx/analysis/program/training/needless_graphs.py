"""Evaluations that record graphs that nobody needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.values import Answer, Result, Site, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import decorate, enclose, imports
from traindx.analysis.program.training.gradients import (
    ends_in_numbers,
    has_history,
    is_frozen,
    wants_gradients,
)
from traindx.analysis.program.training.graphs import feeds_backward
from traindx.analysis.program.training.layers import is_weightless
from traindx.analysis.program.training.ownership import optimizers_of, owns
from traindx.analysis.program.training.phases import LEARNS, HeldOutPass, Loop, evaluations, loop_of
from traindx.analysis.program.training.program import Story


@dataclass(frozen=True, eq=False)
class NeedlessGraph:
    """A loop over held-out data that runs a model while gradients are recorded."""

    evaluation: HeldOutPass
    loop: Loop

    def patch(self) -> str | None:
        """Return the patch that switches gradients off, for the loop or for its function."""
        evaluation, site = self.evaluation, self.loop.run.site
        is_shared = bool(loop_of(evaluation.story, self.loop.run).does(*LEARNS))
        if not imports(site, "torch") or is_shared or _is_run_later(site):
            return None
        if evaluation.learns or site.module.function_of(site.node) is None:
            return enclose(site, "with torch.no_grad():")
        return decorate(site, "@torch.no_grad()")


def _is_run_later(site: Site) -> bool:
    """Tell whether a loop is one of a generator expression that a function returns unrun."""
    statement = site.module.statement_of(site.node)
    return isinstance(statement, ast.Return) and isinstance(statement.value, ast.GeneratorExp)


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
    is_shared = bool(loop_of(story, loop.run).does(*LEARNS))
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


def needless_scores(story: Story) -> Iterator[Deed]:
    """Yield the first pass of each function that runs a model, with gradients, to read it off."""
    if not story.does(Do.BACKWARD):
        return
    known = {e.forward.event.node for e in evaluations(story) if e.loop is not None}
    for function, passes in _idle_functions(story).items():
        first = passes[0]
        if first.event.node in known or not all(_is_read_off(story, d) for d in passes):
            continue
        inside = [e for e in story.events if e.function is function]
        if not wants_gradients(inside):
            known.add(first.event.node)
            yield first


def _idle_functions(story: Story) -> dict[object, list[Deed]]:
    """The functions that the program calls and that learn nothing, with their forward passes."""
    learning = {d.event.function for d in story.does(*LEARNS, Do.ZERO_GRAD)}
    found: dict[object, list[Deed]] = {}
    for deed in story.does(Do.FORWARD):
        function = deed.event.function
        is_called = function is not None and function is not story.execution.function
        if is_called and function not in learning and not deed.event.within:
            found.setdefault(function, []).append(deed)
    return found


def _is_read_off(story: Story, forward: Deed) -> bool:
    """Tell whether a pass builds a graph of which nothing but numbers is kept."""
    event, result = forward.event, forward.event.result
    if event.gradients is not Answer.YES or result is None or forward.subject is None:
        return False
    if is_weightless(forward.subject) and has_history(result) is not Answer.YES:
        return False
    if isinstance(result, Result) and result.gradients is not Answer.YES:
        return False
    is_left = ends_in_numbers(story, result) or _is_evaluated(story, forward, result)
    return is_left and not is_frozen(story, forward.subject)


def _is_evaluated(story: Story, forward: Deed, result: Value) -> bool:
    """Tell whether a trained model runs in evaluation mode, in a loop, and no loss takes it up."""
    event, model = forward.event, forward.subject
    if event.is_training is not Answer.NO or not event.is_repeated or model is None:
        return False
    if story.is_handed_on(result):
        return False
    if event.module.function_of(event.loops[-1].site.node) is not event.function:
        return False
    is_trained = any(owns(o, model) is Answer.YES for o in optimizers_of(story))
    return is_trained and not feeds_backward(story, result)
