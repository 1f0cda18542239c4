"""Other forms of faults in the four calls of a training step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import (
    clearings,
    clips,
    loop_steps,
    nearest_step,
    updates,
)
from bench.corpus.operators import optimisation_updates as first
from bench.corpus.sites import (
    step_words,
    without_effect,
)
from bench.corpus.source import Source
from bench.corpus.writing import (
    Side,
    Site,
    Sites,
    accepting,
    called,
    forms,
    lines,
)

# Steps


def _stepped(source: Source) -> Iterator[ast.stmt]:
    for statement, _ in updates(source):
        if nearest_step(source, statement, is_ahead=True) is not None:
            yield statement


def _cleared(source: Source) -> Iterator[ast.stmt]:
    for statement, _ in clearings(source):
        if nearest_step(source, statement, is_ahead=False) is not None:
            yield statement


def _step_sites(source: Source) -> Iterator[Site]:
    for statement, owner in updates(source):
        step = nearest_step(source, statement, is_ahead=True)
        if step is not None and "." not in step.loss:
            words = {"loss": step.loss, "optimizer": owner, "call": source.code(statement)}
            yield Site(anchor=statement, side=Side.INSTEAD, words=words)


SPARE = "torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)"
without_effect(
    first.step_taken_away,
    _stepped,
    "UPDATE_WEIGHTS",
    known={
        "on-another-optimizer": lines(
            "spare_optimizer.step()", top=(f"spare_optimizer = {SPARE}",), is_fault_here=True
        )
    },
    new={
        "on-a-copy": accepting(
            lines("copy.deepcopy(<owner>).step()"), "parameters-not-in-optimizer"
        )
    },
)
forms(
    first.nan_guard_inverted,
    _step_sites,
    known={
        "isnan-for-not-isnan": lines("if torch.isnan(<loss>):", "    <call>"),
        "compared-with-itself": lines("if <loss>.item() != <loss>.item():", "    <call>"),
    },
    new={
        "guard-in-a-function": lines(
            "if is_fine(<loss>):",
            "    <call>",
            top=("def is_fine(value):", "    return not math.isfinite(value.item())"),
        ),
        "skips-what-is-finite": lines(
            "if torch.isfinite(<loss>):", "    pass", "else:", "    <call>"
        ),
    },
)
without_effect(
    first.zero_grad_taken_away,
    _cleared,
    "CLEAR_GRADIENTS",
    known={
        "on-another-optimizer": lines(
            "spare_optimizer.zero_grad()", top=(f"spare_optimizer = {SPARE}",), is_fault_here=True
        )
    },
    new={"on-a-copy": lines("copy.deepcopy(<owner>).zero_grad()")},
)


def _cleared_once(source: Source) -> Iterator[Site]:
    for statement in _cleared(source):
        loop = source.around(statement, ast.For)
        if isinstance(loop, ast.For) and statement in loop.body:
            start = source.before(loop, "is_first_batch = True")
            words = {"call": source.code(statement)}
            yield Site(anchor=statement, side=Side.INSTEAD, words=words, along=(start,))


forms(
    first.zero_grad_moved_out_of_loop,
    _cleared_once,
    known={
        "first-batch-only": lines("if is_first_batch:", "    <call>", "    is_first_batch = False")
    },
    new={
        "flag-turned-off": lines(
            "is_first_batch, is_due = False, is_first_batch", "if is_due:", "    <call>"
        ),
        "one-call-kept-in-a-function": lines(
            "is_first_batch = once(is_first_batch, lambda: <call>)",
            top=(
                "def once(is_due, action):",
                "    if is_due:",
                "        action()",
                "    return False",
            ),
            is_fault_here=True,
        ),
    },
)
without_effect(
    first.backward_taken_away,
    lambda source: [s.backward for s in loop_steps(source) if s.made is not None],
    "PROPAGATE",
)


def _moved_behind_backward(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        for statement, owner in clearings(source):
            behind = step.block[step.block.index(step.backward) :]
            after = [s for s, name in updates(source) if s in behind and name == owner]
            mine = nearest_step(source, after[0], is_ahead=True) if after else None
            if statement in step.earlier and mine is not None and mine.backward is step.backward:
                words = {**step_words(source, step.backward), "clear": source.code(statement)}
                words["optimizer"] = owner
                along = (source.drop(statement),)
                yield Site(anchor=step.backward, side=Side.AFTER, words=words, along=along)


GROUPS = "for group in <optimizer>.param_groups:"
forms(
    first.zero_grad_after_backward,
    _moved_behind_backward,
    known={
        "model-cleared": lines("<model>.zero_grad()"),
        "gradients-set-to-none": lines("for p in <model>.parameters():", "    p.grad = None"),
    },
    new={
        "groups-cleared-one-by-one": lines(
            GROUPS,
            '    for p in group["params"]:',
            "        if p.grad is not None:",
            "            p.grad.zero_()",
        ),
        "cleared-in-a-function": called("clean_up", "<optimizer>", "<optimizer>.zero_grad()"),
    },
)


# Accumulation


def _accumulating(start: str, *, is_clear_kept: bool) -> Sites:
    """Return the sites of a step that is taken every few batches, or of a rarer clearing."""

    def sites(source: Source) -> Iterator[Site]:
        for step in loop_steps(source):
            found = [(s, o) for s, o in updates(source) if s in step.block]
            clear = [s for s, _ in clearings(source) if s in step.block]
            loop = source.around(step.backward, ast.For)
            if len(found) != 1 or len(clear) != 1 or not isinstance(loop, ast.For):
                continue
            if loop.body is not step.block or len(loop_steps(source)) != 1:
                continue
            counted = source.before(loop, start)
            words = {"clear": source.code(clear[0]), "step": source.code(found[0][0])}
            if is_clear_kept:
                yield Site(anchor=clear[0], side=Side.INSTEAD, words=words, along=(counted,))
            else:
                along = (counted, source.drop(clear[0]))
                yield Site((), found[0][0], Side.INSTEAD, words, along, step.backward)

    return sites


COUNTER = (
    "class Counter:",
    "    seen = 0",
    "",
    "    def is_due(self):",
    "        self.seen += 1",
    "        return self.seen % <s> == 0",
)
forms(
    first.accumulation_without_division,
    _accumulating("pending = 0", is_clear_kept=False),
    known={
        "counter-set-back": lines(
            "pending += 1", "if pending == <s>:", "    <step>", "    <clear>", "    pending = 0"
        )
    },
)
forms(
    first.accumulation_without_division,
    _accumulating("pending = []", is_clear_kept=False),
    new={
        "batches-collected": lines(
            "pending.append(1)",
            "if len(pending) < <s>:",
            "    continue",
            "<step>",
            "<clear>",
            "pending = []",
        ),
        "counted-by-a-class": lines(
            "pending = pending or [Counter()]",
            "if pending[0].is_due():",
            "    <step>",
            "    <clear>",
            top=COUNTER,
        ),
    },
)
forms(
    first.accumulation_stepped_every_time,
    _accumulating("pending = 0", is_clear_kept=True),
    known={
        "counter-set-back": lines(
            "if pending in (0, <s>):", "    <clear>", "    pending = 0", "pending += 1"
        )
    },
)
forms(
    first.accumulation_stepped_every_time,
    _accumulating("pending = []", is_clear_kept=True),
    new={
        "counted-by-a-class": lines(
            "pending = pending or [Counter()]",
            "if pending[0].is_due():",
            "    <clear>",
            top=COUNTER,
            is_fault_here=True,
        )
    },
)


# Clipping


def _clips_behind_step(source: Source) -> Iterator[Site]:
    for statement, call in clips(source):
        for stepped, _ in updates(source):
            if stepped in source.siblings(statement) and isinstance(statement, ast.Expr):
                words = {"clip": source.code(statement), "what": source.code(call.args[0])}
                along = (source.drop(statement),)
                yield Site(anchor=stepped, side=Side.AFTER, words=words, along=along)


forms(
    first.clip_moved_after_step,
    _clips_behind_step,
    known={
        "by-value": lines("torch.nn.utils.clip_grad_value_(<what>, 1.0)"),
        "behind-a-true-condition": lines("if torch.is_grad_enabled():", "    <clip>"),
    },
    new={
        "by-hand": lines(
            "for p in <what>:", "    if p.grad is not None:", "        p.grad.clamp_(-1.0, 1.0)"
        ),
        "in-a-function": lines(
            "tidy_gradients(lambda: <clip>)",
            top=("def tidy_gradients(clip):", "    clip()"),
            is_fault_here=True,
        ),
    },
)
