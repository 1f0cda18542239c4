"""Other forms of wrong learning rates, schedules, clipping, decay and batch sizes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from bench.corpus.anatomy import clips, loop_steps, optimizers, schedule_steps, updates
from bench.corpus.operators import Change
from bench.corpus.operators import optimisation_rates as first
from bench.corpus.operators.optimisation_rates import literal, rates, scaled
from bench.corpus.sites import (
    behind_losses,
    behind_optimizers,
    expressions,
    unheeded,
    without_effect,
)
from bench.corpus.source import Source
from bench.corpus.syntax import argument, keyword, named, number, targets
from bench.corpus.writing import (
    Side,
    Site,
    Sites,
    Writing,
    accepting,
    ahead,
    called,
    forms,
    function,
    inline,
    lines,
)

GROUPS = "for group in <optimizer>.param_groups:"
FIXED = "torch.optim.lr_scheduler.LambdaLR(<optimizer>, lambda step: <s>)"
given_rates = expressions(rates)


def _scaled_rate(of: Callable[[Source, float], Iterator[Change]]) -> None:
    """Add the forms of a rate that is multiplied on its way to the weights."""
    forms(
        of,
        given_rates,
        known={
            "factor-at-use": inline("<s> * <x>"),
            "factor-with-a-name": inline("RATE_FACTOR * <x>", "RATE_FACTOR = <s>"),
        },
        new={"computed-in-a-function": function("x * <s>", "scaled_rate")},
    )
    forms(
        of,
        behind_optimizers,
        known={"set-in-the-groups": lines(GROUPS, '    group["lr"] = <rate> * <s>')},
        new={
            "multiplied-in-the-groups": lines(GROUPS, '    group["lr"] *= <s>'),
            "schedule-of-one-factor": accepting(
                lines(f"schedule_of_rate = {FIXED}"), "lr-schedule-misuse"
            ),
        },
    )


_scaled_rate(first.rate_raised)
_scaled_rate(first.rate_lowered)
forms(
    first.rate_zero,
    given_rates,
    known={
        "whole-number-division": inline("<x> // 1"),
        "turned-into-a-whole-number": inline("float(int(<x>))"),
    },
    new={"rounded": ahead("round(<x>, 0)", name="rounded_rate")},
)
forms(
    first.rate_zero,
    behind_optimizers,
    known={"set-in-the-groups": lines(GROUPS, '    group["lr"] = 0.0')},
    new={
        "schedule-that-starts-at-nothing": accepting(
            lines(
                "warm_up = torch.optim.lr_scheduler.LambdaLR(<optimizer>, lambda step: step / 1000)"
            ),
            "lr-schedule-misuse",
        )
    },
)


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


def _with_rate(writing: Writing) -> Writing:
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
        "capped-for-a-trial": _with_rate(inline("min(<x>, 1)")),
        "thousandth-by-mistake": _with_rate(inline("max(1, <x> // 1000)")),
    },
    new={"in-a-function": _with_rate(function("x if x > 10**6 else 1", "warm_steps"))},
)


def _clip_calls(source: Source) -> list[ast.stmt]:
    return [s for s, _ in clips(source)] if updates(source) else []


forms(
    first.clip_taken_away,
    unheeded(_clip_calls),
    known={
        "behind-a-flag-that-is-off": _with_rate(
            lines("if CLIP:", "    <call>", top=("CLIP = False",), is_fault_here=True)
        ),
        "named-not-called": _with_rate(lines("<bare>")),
    },
    new={
        "in-a-function-nobody-calls": _with_rate(lines("def later():", "    <call>")),
        "on-detached-copies": _with_rate(
            lines("torch.nn.utils.clip_grad_norm_([torch.zeros(1, requires_grad=True)], 1.0)")
        ),
    },
)


def _clip_bounds(source: Source) -> Iterator[Site]:
    found = [argument(c, 1, "max_norm", "clip_value") for _, c in clips(source)]
    for call in named(source, "Trainer", "TrainingArguments"):
        found.append(keyword(call, "gradient_clip_val", "max_grad_norm"))
    yield from (Site((bound,)) for bound in found if bound is not None)


forms(
    first.clip_tightened,
    _clip_bounds,
    known={
        "lower-of-two": inline("min(<x>, <s>)"),
        "factor-with-a-name": inline("CLIP_FACTOR * <x>", "CLIP_FACTOR = <s>"),
    },
    new={
        "in-a-function": function("x * <s>", "clip_bound"),
        "a-line-ahead": ahead("<x> * <s>", name="largest_norm"),
    },
)


def _unclipped(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        for statement, owner in updates(source):
            models = [o.model for o in optimizers(source) if o.name == owner and o.model]
            if statement in step.block and models and not clips(source):
                words = {"model": models[0], "optimizer": owner}
                yield Site(anchor=statement, words=words)


GRADIENTS = "[p.grad for p in <model>.parameters() if p.grad is not None]"
forms(
    first.tight_clip_put_in,
    _unclipped,
    known={
        "by-value": lines("nn.utils.clip_grad_value_(<model>.parameters(), <s>)"),
        "in-a-function": called(
            "clip", "<model>", "torch.nn.utils.clip_grad_norm_(<model>.parameters(), max_norm=<s>)"
        ),
    },
    new={
        "clamped-by-hand": lines(f"for grad in {GRADIENTS}:", "    grad.clamp_(-<s>, <s>)"),
        "scaled-by-its-norm": lines(
            f"gradients = {GRADIENTS}",
            "norm = torch.stack([g.norm() for g in gradients]).norm()",
            "for g in gradients:",
            "    g.mul_(min(1.0, <s> / (norm.item() + 1e-12)))",
        ),
    },
)

DECAY = "<s> * 10"  # at the least of them the first form multiplies AdamW's by ten as well
forms(
    first.decay_raised,
    behind_optimizers,
    known={
        "set-in-the-groups": lines(GROUPS, f'    group["weight_decay"] = {DECAY}'),
        "set-in-a-function": called(
            "regularise", "<optimizer>", GROUPS, f"    group.update(weight_decay={DECAY})"
        ),
    },
)
forms(
    first.decay_raised,
    behind_losses,
    known={
        "penalty-in-the-loss": accepting(
            lines("<loss> = <loss> + <s> * sum(p.pow(2).sum() for p in <model>.parameters())"),
            "competing-losses",
        )
    },
    new={
        "penalty-in-a-function": accepting(
            lines(
                "<loss> = <loss> + penalty(<model>)",
                top=(
                    "def penalty(module):",
                    "    weights = torch.cat([p.flatten() for p in module.parameters()])",
                    "    return <s> * weights.square().sum()",
                ),
            ),
            "competing-losses",
        )
    },
)


def _behind_steps(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        for statement, owner in updates(source):
            models = [o.model for o in optimizers(source) if o.name == owner and o.model]
            if statement in step.block and models:
                words = {"model": models[0], "optimizer": owner}
                yield Site(anchor=statement, side=Side.AFTER, words=words)


forms(
    first.decay_raised,
    _behind_steps,
    new={
        "weights-shrunk-by-hand": lines(
            "with torch.no_grad():",
            "    for p in <model>.parameters():",
            "        p.mul_(1 - min(0.9, <s> * 0.1))",
        )
    },
)
momenta = expressions(lambda source: [keyword(o.call, "momentum") for o in optimizers(source)])
forms(
    first.momentum_raised,
    momenta,
    known={
        "higher-of-two": inline("max(<x>, <s>)"),
        "with-a-name": inline("SMOOTHING", "SMOOTHING = <s>"),
    },
    new={"in-a-function": function("max(x, <s>)", "smoothing")},
)
forms(
    first.momentum_raised,
    lambda source: behind_optimizers(source) if list(momenta(source)) else [],
    new={"set-in-the-groups": lines(GROUPS, '    group["momentum"] = <s>')},
)

# Settings that do not arrive


def _settings(source: Source) -> Iterator[Site]:
    for rate in rates(source):
        written = number(source, rate)
        if written is not None and written is not rate and isinstance(written.value, int | float):
            yield Site((rate,), words={"value": literal(float(written.value))})


forms(
    first.rate_written_down_twice,
    _settings,
    known={
        "constant-of-its-own": inline("BASE_RATE", "BASE_RATE = <value> * <s>"),
        "a-line-ahead": ahead("<value> * <s>", name="rate"),
    },
    new={
        "default-of-a-function": inline(
            "rate_to_use()", "def rate_to_use(rate=<value> * <s>):", "    return rate"
        ),
        "table-of-defaults": inline(
            'DEFAULTS["rate"]', 'DEFAULTS = {"rate": <value> * <s>, "momentum": 0.9}'
        ),
    },
)


def _set_elsewhere(source: Source) -> Iterator[Site]:
    for optimizer in optimizers(source):
        rate = optimizer.rate
        if rate is not None and optimizer.name:
            words = {"optimizer": optimizer.name, "rate": source.code(rate)}
            low = source.replace(rate, "1e-6")
            yield Site((), optimizer.statement, Side.AFTER, words, (low,))


forms(
    first.rate_set_on_defaults,
    _set_elsewhere,
    known={
        "attribute-nobody-reads": lines("<optimizer>.lr = <rate>"),
        "key-nobody-reads": lines(GROUPS, '    group["learning_rate"] = <rate>'),
    },
    new={
        "set-in-a-copy-of-the-state": lines(
            '<optimizer>.state_dict()["param_groups"][0]["lr"] = <rate>'
        ),
        "loop-variable-overwritten": lines(GROUPS, '    group = {**group, "lr": <rate>}'),
    },
)


def _batch_sizes(source: Source) -> Iterator[Site]:
    for change in first.batch_of_one(source, 1.0):
        spot = change.edits[0]
        for node in source.of_type(ast.Constant):
            assert isinstance(node, ast.Constant)
            if source.span(node) == (spot.start, spot.end):
                yield Site((node,))


forms(
    first.batch_of_one,
    _batch_sizes,
    known={
        "lower-of-two": inline("min(<x>, <s>)"),
        "thousandth-by-mistake": inline("<x> // 1000 + <s>"),
    },
    new={"in-a-function": function("min(x, <s>)", "per_step")},
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
