"""Other forms of schedules that are misused."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import optimizers, schedule_steps, updates
from bench.corpus.operators import Change
from bench.corpus.operators import optimisation_rates as first
from bench.corpus.operators.optimisation_rates import rates, scaled
from bench.corpus.sites import (
    without_effect,
)
from bench.corpus.source import Source
from bench.corpus.syntax import keyword, named, targets
from bench.corpus.writing import (
    Side,
    Site,
    Sites,
    Writing,
    ahead,
    called,
    forms,
    function,
    inline,
    lines,
)

GROUPS = "for group in <optimizer>.param_groups:"


def _schedulable(start: str) -> Sites:
    """Return the sites behind an optimizer's step in the function that makes it."""

    def sites(source: Source) -> Iterator[Site]:
        for optimizer in optimizers(source):
            stepped = [s for s, owner in updates(source) if owner == optimizer.name]
            if not optimizer.name or not stepped or schedule_steps(source):
                continue
            if source.scope(stepped[0]) is source.scope(optimizer.statement):
                made = start.replace("<optimizer>", optimizer.name)
                along = (source.after(optimizer.statement, made),) if made else ()
                words = {"optimizer": optimizer.name}
                yield Site((), stepped[0], Side.AFTER, words, along)

    return sites


BY_HAND = "is_decaying = True"
forms(
    first.rate_fades_early,
    _schedulable(BY_HAND),
    known={
        "subtracted-by-hand": lines(
            GROUPS,
            '    start = group.setdefault("start", group["lr"])',
            '    group["lr"] = max(0.0, group["lr"] - start / <s>)',
        ),
        "in-a-function": called(
            "fade",
            "<optimizer>",
            GROUPS,
            '    start = group.setdefault("start", group["lr"])',
            '    group["lr"] = max(0.0, group["lr"] - start / <s>)',
        ),
    },
    new={
        "counted-in-the-groups": lines(
            GROUPS,
            '    group["seen"] = group.get("seen", 0) + 1',
            '    if group["seen"] >= <s>:',
            '        group["lr"] = 0.0',
        ),
        "schedule-made-late": lines(
            "if is_decaying is True:",
            "    is_decaying = torch.optim.lr_scheduler.PolynomialLR(<optimizer>, total_iters=<s>)",
            "is_decaying.step()",
        ),
    },
)
forms(
    first.epoch_schedule_stepped_per_batch,
    _schedulable(BY_HAND),
    known={
        "exponential": lines(
            "if is_decaying is True:",
            "    is_decaying = torch.optim.lr_scheduler.ExponentialLR(<optimizer>, gamma=<s>)",
            "is_decaying.step()",
        ),
        "multiplied-by-hand": lines(GROUPS, '    group["lr"] *= <s>'),
    },
    new={
        "in-a-function": called(
            "cool_down", "<optimizer>", GROUPS, '    group["lr"] = group["lr"] * <s>'
        ),
        "multiplicative": lines(
            "if is_decaying is True:",
            "    is_decaying = torch.optim.lr_scheduler.MultiplicativeLR(",
            "        <optimizer>, lambda epoch: <s>",
            "    )",
            "is_decaying.step()",
        ),
    },
)


def _schedules_deeper(*, is_kept: bool) -> Sites:
    """Return the sites of a schedule's step in the loop over batches."""

    def sites(source: Source) -> Iterator[Site]:
        for statement, owner in schedule_steps(source):
            for stepped, mine in updates(source):
                inside = source.around(stepped, ast.For, ast.While)
                outer = source.around(statement, ast.For, ast.While)
                if inside is None or outer is None or source.around(inside, ast.For) is not outer:
                    continue
                if source.scope(stepped) is source.scope(statement):
                    along = () if is_kept else (source.drop(statement),)
                    words = {"schedule": owner, "optimizer": mine, "call": source.code(statement)}
                    yield Site((), stepped, Side.AFTER, words, along)

    return sites


forms(
    first.schedule_moved_into_batch_loop,
    _schedules_deeper(is_kept=True),
    known={"stepped-in-both-loops": lines("<schedule>.step()")},
    new={"in-a-function-as-well": called("advance", "<schedule>", "<schedule>.step()")},
)
forms(
    first.schedule_moved_into_batch_loop,
    _schedules_deeper(is_kept=False),
    known={"while-training": lines("if torch.is_grad_enabled():", "    <schedule>.step()")},
    new={
        "behind-the-last-rate": lines(
            "rate_before = <optimizer>.param_groups[0]['lr']",
            "if rate_before > 0:",
            "    <schedule>.step()",
        )
    },
)
without_effect(
    first.schedule_never_stepped,
    lambda source: [
        s
        for s, owner in schedule_steps(source)
        if any(owner in {getattr(t, "id", "") for t in targets(n)} for n in source.nodes)
    ],
    "USE_SCHEDULE",
)


def _lengths(source: Source) -> Iterator[Site]:
    for call in named(source, "OneCycleLR", "get_linear_schedule_with_warmup"):
        length = keyword(call, "epochs", "total_steps", "num_warmup_steps")
        if length is not None:
            yield Site((length,))
    for call in named(source, "TrainingArguments"):
        warm = keyword(call, "warmup_steps")
        if warm is not None:
            yield Site((warm,))


forms(
    first.cycle_far_too_long,
    _lengths,
    known={
        "a-line-ahead": ahead("<x> * 200", name="schedule_length"),
        "factor-with-a-name": inline("STEPS_PER_ROUND * <x>", "STEPS_PER_ROUND = 200"),
    },
    new={"in-a-function": function("200 * (x + 1)", "length_of_schedule")},
)


def _warmups(source: Source) -> Iterator[Site]:
    for node in source.nodes:
        if not isinstance(node, ast.Constant) or not first.is_warmup(source, node):
            continue
        if type(node.value) is int and node.value > 1:
            yield Site((node,))


def with_rate(writing: Writing) -> Writing:
    """Return a writing that raises the rate as well where the strength is above one."""

    def write(source: Source, site: Site, strength: float) -> Change | None:
        change = writing(source, site, strength)
        if change is None or strength <= 1:
            return change
        more = [scaled(source, r, strength) for r in rates(source)[:1]]
        spans = [(e.start, e.end) for e in (*change.edits, *more)]
        is_apart = len(set(spans)) == len(spans)
        return Change((*change.edits, *more), change.at) if is_apart else None

    return write


forms(
    first.warmup_taken_away,
    _warmups,
    known={
        "capped-for-a-trial": with_rate(inline("min(<x>, 1)")),
        "thousandth-by-mistake": with_rate(inline("max(1, <x> // 1000)")),
    },
    new={"in-a-function": with_rate(function("x if x > 10**6 else 1", "warm_steps"))},
)


def _schedules_beside(source: Source) -> Iterator[Site]:
    for statement, owner in schedule_steps(source):
        for stepped, mine in updates(source):
            if stepped in source.siblings(statement) and not isinstance(stepped, ast.If):
                words = {"schedule": owner, "optimizer": mine, "call": source.code(statement)}
                words["step"] = source.code(stepped)
                yield Site((), stepped, Side.INSTEAD, words, (source.drop(statement),))


forms(
    first.schedule_ahead_of_optimizer,
    _schedules_beside,
    known={
        "both-in-a-loop": lines("for part in (<schedule>, <optimizer>):", "    part.step()"),
        "on-one-line": lines("<call>; <step>"),
    },
    new={
        "in-a-function": lines(
            "advance(<schedule>, <optimizer>)",
            top=("def advance(first, then):", "    first.step()", "    then.step()"),
        )
    },
)
