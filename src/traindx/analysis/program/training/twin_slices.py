"""Inputs and targets that are cut out of the same data by the same bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    ClassValue,
    Known,
    Result,
    Value,
    constant,
    is_same,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import model_inputs
from traindx.analysis.program.training.kinds import names_of, words_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

TARGETS = frozenset({"y", "yb", "y_batch", "target", "targets", "label", "labels", "tgt", "trg"})
# names of a model that is to give back what it was given
REBUILDS = re.compile(r"auto_?encod|reconstruct|denois|inpaint|diffusion|\bvae\b|\bmlm\b", re.I)
LOSSES = ("cross_entropy", "nll_loss")
Pair = tuple[Value, Value]


def twin_slices(program: Program) -> Iterator[Pair]:
    """Yield inputs and targets that are one and the same slice, each target once."""
    seen: set[object] = set()
    for given, wanted in (*_in_losses(program), *_in_batches(program)):
        if wanted.site is not None and wanted.site.node not in seen:
            seen.add(wanted.site.node)
            yield given, wanted


def _in_losses(program: Program) -> Iterator[Pair]:
    for loss in program.results(*LOSSES):
        scores, target = loss.operation.argument("input"), loss.operation.argument("target")
        if scores is None or target is None or loss.story.recall(_rebuilds):
            continue
        wanted = whole_tensor(target)
        for given in map(whole_tensor, model_inputs(loss.story, scores, loss.event)):
            is_twin = given is not wanted and is_same(given, wanted, by_turn=True)
            if _is_cut(wanted) and is_twin and not _is_view(given, wanted):
                yield given, wanted


def _is_view(given: Value, wanted: Value) -> bool:
    """Tell whether names say that the second is another view of the first: `x` and `x2`."""
    words = [{w for n in names_of(v) for w in words_of(n)} for v in (given, wanted)]
    return bool(words[0]) and words[0] == words[1]


def _in_batches(program: Program) -> Iterator[Pair]:
    """Two slices in a function that makes batches for a program out of sight."""
    if any(_is_moved(v) for s in program.stories for v in s.values):
        return
    for story in program.stories:
        is_model = bool(story.does(Do.FORWARD, Do.BACKWARD))
        if is_model or story.recall(_rebuilds):
            continue
        cuts = [v for v in story.values if _is_cut(v)]
        for wanted in cuts:
            twins = (v for v in cuts if v is not wanted and is_same(v, wanted))
            is_target = any(n.lower() in TARGETS for n in names_of(wanted))
            given = next(twins, None) if is_target else None
            if given is not None and not any(n.lower() in TARGETS for n in names_of(given)):
                yield given, wanted


def _is_cut(value: Value) -> bool:
    """Tell whether a value is cut out of a sequence between two bounds that move."""
    return any(not (isinstance(a, Known) or isinstance(b, Known)) for a, b in _slices(value))


def _is_moved(value: Value) -> bool:
    """`logits[:, :-1]` and `targets[:, 1:]`: all but one."""
    for low, high in _slices(value):
        is_open = isinstance(low, Known) and isinstance(high, Known)
        if is_open and (constant(low), constant(high)) in ((1, None), (None, -1)):
            return True
    return False


def _slices(value: Value) -> Iterator[Pair]:
    """The bounds of the slices that a value is cut by."""
    if not isinstance(value, Result) or value.maker != "operator.getitem":
        return
    for key in (value.args[1], *value.args[1].inputs):
        if isinstance(key, Result) and key.maker == "builtins.slice" and len(key.args) > 1:
            yield key.args[0], key.args[1]


def _rebuilds(story: Story) -> bool:
    """Tell whether names speak of a model that gives back its input."""
    module = story.execution.module
    names = [n for v in story.values for n in names_of(v)]
    owners = [e.callee.node.name for e in story.events if isinstance(e.callee, ClassValue)]
    return any(REBUILDS.search(name) for name in (module.path, *names, *owners))
