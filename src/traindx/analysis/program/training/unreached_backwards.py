"""Backward passes that are written down and never run: a condition that never holds is before."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Answer, Site
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.ownership import trains
from traindx.analysis.program.training.program import Program, Story

LEARNS = (Do.BACKWARD, Do.GRAD, Do.STEP, Do.MANUAL_UPDATE)
LOOPS = 2  # over epochs and over batches: who only evaluates goes over the batches once


@dataclass(frozen=True, slots=True, eq=False)
class UnreachedBackward:
    """A backward pass that no turn of its loop comes to, and the forward pass beside it."""

    site: Site
    forward: ProgramEvent


def unreached_backwards(story: Story) -> Iterator[UnreachedBackward]:
    """Yield the backward passes that a program never comes to, where it learns in no other way."""
    if story.execution.gave_up or story.does(*LEARNS):
        return
    optimizers = [o for o in story.made(Kind.OPTIMIZER) if story.escapes(o) is Answer.NO]
    for deed in story.does(Do.FORWARD) if optimizers else ():
        event, model = deed.event, deed.subject
        loops = [loop for loop in event.loops if not loop.is_whole]
        if len(loops) < LOOPS or model is None or not any(trains(o, model) for o in optimizers):
            continue
        around = [loops[-1].site, *([] if event.function is None else [_whole(event)])]
        for site in (s for place in around for s in _backwards(place)):
            if not _is_reached(story.program, site):
                yield UnreachedBackward(site, event)


def _whole(event: ProgramEvent) -> Site:
    return Site(event.module, event.function or event.node)


def _backwards(around: Site) -> Iterator[Site]:
    """The calls of `backward` inside of a statement."""
    for node in ast.walk(around.node):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == "backward":
            yield Site(around.module, node)


def _is_reached(program: Program, site: Site) -> bool:
    return any(id(site.node) in story.recall(_nodes) for story in program.stories)


def _nodes(story: Story) -> set[int]:
    return {id(event.node) for event in story.events}
