"""Other forms of wrong learning rates, clipping, decay and batch sizes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from bench.corpus.anatomy import clips, loop_steps, optimizers, updates
from bench.corpus.forms.optimisation_schedules import with_rate
from bench.corpus.operators import Change
from bench.corpus.operators import optimisation_rates as first
from bench.corpus.operators.optimisation_rates import literal, rates
from bench.corpus.sites import (
    behind_losses,
    behind_optimizers,
    expressions,
    unheeded,
)
from bench.corpus.source import Source
from bench.corpus.syntax import argument, keyword, named, number
from bench.corpus.writing import (
    Side,
    Site,
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


def _clip_calls(source: Source) -> list[ast.stmt]:
    return [s for s, _ in clips(source)] if updates(source) else []


forms(
    first.clip_taken_away,
    unheeded(_clip_calls),
    known={
        "behind-a-flag-that-is-off": with_rate(
            lines("if CLIP:", "    <call>", top=("CLIP = False",), is_fault_here=True)
        ),
        "named-not-called": with_rate(lines("<bare>")),
    },
    new={
        "in-a-function-nobody-calls": with_rate(lines("def later():", "    <call>")),
        "on-detached-copies": with_rate(
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
