"""Learning rates, schedules, clipping, decay and batch size."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import clips, is_schedule, loop_steps, optimizers, schedule_steps, updates
from bench.corpus.operators import Change, many, one, operator
from bench.corpus.source import Edit, Source
from bench.corpus.syntax import argument, imported, keyword, last, named, number, targets


def literal(value: float) -> str:
    return f"{value:.10g}"


def rates(source: Source) -> list[ast.expr]:
    """Return the learning rates of a script, wherever they are given."""
    found = [o.rate for o in optimizers(source) if o.rate is not None]
    for call in named(source, "TrainingArguments"):
        rate = keyword(call, "learning_rate")
        found += [rate] if rate is not None else []
    return found


def scaled(source: Source, value: ast.expr, factor: float) -> Edit:
    """Return an edit that scales a value where it is written, or else where it is used."""
    written = number(source, value)
    if written is not None and isinstance(written.value, int | float):
        return source.replace(written, literal(written.value * factor))
    times = f"{literal(factor)} * " if factor >= 1 else ""
    by = f" / {literal(1 / factor)}" if factor < 1 else ""
    return source.wrap(value, times, by)


@operator("lr-too-high", strengths=(10, 100, 1000, 3))
def rate_raised(source: Source, strength: float) -> Iterator[Change]:
    for rate in rates(source):
        yield one(scaled(source, rate, strength))


@operator("lr-too-low", strengths=(1e-2, 1e-3, 1e-4, 0.1))
def rate_lowered(source: Source, strength: float) -> Iterator[Change]:
    for rate in rates(source):
        yield one(scaled(source, rate, strength))


@operator("lr-zero")
def rate_zero(source: Source, strength: float) -> Iterator[Change]:
    for rate in rates(source):
        yield one(source.replace(number(source, rate) or rate, "0.0"))


@operator("lr-zero", accepted=("lr-schedule-misuse",), strengths=(5, 20))
def rate_fades_early(source: Source, strength: float) -> Iterator[Change]:
    """A linear decay that ends after a few steps: the schedule is why the rate is zero."""
    n = literal(strength)
    made = f"decay = torch.optim.lr_scheduler.LambdaLR({{}}, lambda i: max(0.0, 1.0 - i / {n}))"
    yield from _scheduled(source, made)


@operator("lr-schedule-misuse", accepted=("lr-zero", "lr-too-low"), strengths=(0.5, 0.8, 0.97))
def epoch_schedule_stepped_per_batch(source: Source, strength: float) -> Iterator[Change]:
    """A decay meant per epoch that runs per batch; what it leads to is a vanishing rate."""
    made = f"lr_decay = torch.optim.lr_scheduler.StepLR({{}}, step_size=1, gamma={strength:g})"
    yield from _scheduled(source, made)


def _scheduled(source: Source, made: str) -> Iterator[Change]:
    name = made.split(" = ", maxsplit=1)[0]
    if "torch" not in imported(source):
        return
    for optimizer in optimizers(source):
        stepped = [s for s, owner in updates(source) if owner == optimizer.name]
        is_near = stepped and source.scope(stepped[0]) is source.scope(optimizer.statement)
        if optimizer.name and is_near and not schedule_steps(source):
            built = source.after(optimizer.statement, made.format(optimizer.name))
            step = source.after(stepped[0], f"{name}.step()")
            yield Change((built, step), step)


@operator("lr-schedule-misuse", accepted=("lr-zero", "lr-too-low"))
def schedule_moved_into_batch_loop(source: Source, strength: float) -> Iterator[Change]:
    for statement, owner in schedule_steps(source):
        for stepped, _ in updates(source):
            inside = source.around(stepped, ast.For, ast.While)
            outer = source.around(statement, ast.For, ast.While)
            is_deeper = (
                outer is not None and source.around(inside, ast.For) is outer if inside else False
            )
            if is_deeper and source.scope(stepped) is source.scope(statement):
                moved = source.after(stepped, f"{owner}.step()")
                yield many(moved, source.drop(statement))


@operator("lr-schedule-misuse")
def schedule_never_stepped(source: Source, strength: float) -> Iterator[Change]:
    for statement, owner in schedule_steps(source):
        made = [n for n in source.nodes if owner in {getattr(t, "id", "") for t in targets(n)}]
        if made:
            yield Change((source.drop(statement),), made[0])


@operator("lr-schedule-misuse", accepted=("lr-too-low", "lr-zero"))
def cycle_far_too_long(source: Source, strength: float) -> Iterator[Change]:
    """A schedule told of many more steps than there are stays in its warm-up."""
    for call in named(source, "OneCycleLR", "get_linear_schedule_with_warmup"):
        steps = keyword(call, "epochs", "total_steps", "num_warmup_steps")
        if steps is not None:
            yield one(source.wrap(steps, "200 * ", ""))
    for call in named(source, "TrainingArguments"):
        warm = keyword(call, "warmup_steps")
        if warm is not None:
            yield one(source.replace(warm, "20000"))


@operator("missing-warmup", accepted=("lr-too-high",), strengths=(1, 5))
def warmup_taken_away(source: Source, strength: float) -> Iterator[Change]:
    """Without its warm-up, and at a peak that needed it, a run starts too fast."""
    warm = [n for n in source.nodes if isinstance(n, ast.Constant) and is_warmup(source, n)]
    for constant in warm:
        if type(constant.value) is int and constant.value > 1:
            edits = [source.replace(constant, "1")]
            if strength > 1:
                edits += [scaled(source, r, strength) for r in rates(source)[:1]]
            if len({(e.start, e.end) for e in edits}) == len(edits):
                yield many(*edits)


def is_warmup(source: Source, node: ast.AST) -> bool:
    parent = source.parents.get(node)
    if isinstance(parent, ast.keyword):
        return "warm" in (parent.arg or "")
    if isinstance(parent, ast.Dict):
        keys = [k for k, v in zip(parent.keys, parent.values, strict=True) if v is node]
        return any(isinstance(k, ast.Constant) and "warm" in str(k.value) for k in keys)
    return any("warm" in str(getattr(t, "id", "")).lower() for t in targets(parent or node))


@operator("missing-gradient-clipping", accepted=("lr-too-high",), strengths=(1, 4))
def clip_taken_away(source: Source, strength: float) -> Iterator[Change]:
    """Without the clip, at the rate that it allowed or a higher one."""
    for statement, _ in clips(source):
        edits = [source.drop(statement)] if isinstance(statement, ast.Expr) else []
        if strength > 1:
            edits += [scaled(source, r, strength) for r in rates(source)[:1]]
        near = [s for s, _ in updates(source)]
        if isinstance(statement, ast.Expr) and near:
            yield Change(tuple(edits), near[0])


@operator("gradient-clipping-too-tight", strengths=(1e-2, 1e-4, 1e-6))
def clip_tightened(source: Source, strength: float) -> Iterator[Change]:
    found = [argument(c, 1, "max_norm", "clip_value") for _, c in clips(source)]
    for call in named(source, "Trainer", "TrainingArguments"):
        found.append(keyword(call, "gradient_clip_val", "max_grad_norm"))
    for bound in found:
        if bound is not None:
            yield one(source.replace(number(source, bound) or bound, literal(strength)))


@operator("gradient-clipping-too-tight", strengths=(1e-3, 1e-5))
def tight_clip_put_in(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        for statement, owner in updates(source):
            models = [o.model for o in optimizers(source) if o.name == owner and o.model]
            if statement in step.block and models and not clips(source):
                clip = f"torch.nn.utils.clip_grad_norm_({models[0]}.parameters(), {strength:g})"
                yield one(source.before(statement, clip))


@operator("weight-decay-too-high", strengths=(0.1, 1, 10))
def decay_raised(source: Source, strength: float) -> Iterator[Change]:
    for optimizer in optimizers(source):
        # Adam's decay acts through its normalised step and so bites at other values
        value = literal(strength * (10 if last(optimizer.call) == "AdamW" else 1))
        yield one(_given(source, optimizer.call, "weight_decay", value))
    for call in named(source, "TrainingArguments"):
        yield one(_given(source, call, "weight_decay", literal(strength * 20)))


def _given(source: Source, call: ast.Call, name: str, value: str) -> Edit:
    """Return an edit that gives a keyword a value, anew or in place of the one it has."""
    there = keyword(call, name)
    if there is not None:
        return source.replace(there, value)
    final = [*call.args, *(k.value for k in call.keywords)][-1]
    return source.wrap(final, "", f", {name}={value}")


@operator("lr-too-high", strengths=(0.99, 0.999))
def momentum_raised(source: Source, strength: float) -> Iterator[Change]:
    """Momentum of 0.999 multiplies the effective rate by a hundred."""
    for optimizer in optimizers(source):
        momentum = keyword(optimizer.call, "momentum")
        if momentum is not None:
            yield one(source.replace(number(source, momentum) or momentum, literal(strength)))


@operator("config-not-applied", accepted=("lr-too-low",), strengths=(1e-3, 1e-4))
def rate_written_down_twice(source: Source, strength: float) -> Iterator[Change]:
    """The setting is there and is printed, and the optimizer has another value."""
    for rate in rates(source):
        written = number(source, rate)
        if written is not None and written is not rate and isinstance(written.value, int | float):
            yield one(source.replace(rate, literal(written.value * strength)))


@operator("config-not-applied", accepted=("lr-too-low",))
def rate_set_on_defaults(source: Source, strength: float) -> Iterator[Change]:
    """The rate is lowered for a start and 'raised' where no optimizer looks."""
    for optimizer in optimizers(source):
        rate = optimizer.rate
        if rate is not None and optimizer.name:
            value = source.code(rate)
            late = source.after(optimizer.statement, f'{optimizer.name}.defaults["lr"] = {value}')
            yield many(late, source.replace(rate, "1e-6"))


@operator("batch-too-small", strengths=(1, 2))
def batch_of_one(source: Source, strength: float) -> Iterator[Change]:
    """Only where the number of steps does not follow from it: else the run is another one."""
    if named(source, "DataLoader", "BatchNorm1d", "BatchNorm2d"):
        return
    for node in source.nodes:
        is_named = isinstance(node, ast.Assign) and any(
            "batch" in str(getattr(t, "id", "")).lower() for t in targets(node)
        )
        value = node.value if is_named and isinstance(node, ast.Assign) else None
        is_whole = isinstance(value, ast.Constant) and type(value.value) is int
        if value is not None and is_whole and _steps_are_counted(source):
            yield one(source.replace(value, literal(strength)))
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "batch_size":
                    yield one(source.replace(value, literal(strength)))


def _steps_are_counted(source: Source) -> bool:
    """Tell whether every training loop runs over plain `range(N)`."""
    for step in loop_steps(source):
        loop = source.around(step.backward, ast.For)
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
            return False
        if last(loop.iter) != "range" or len(loop.iter.args) > 2:
            return False
    return bool(loop_steps(source))


@operator("lr-schedule-misuse", accepted=("lr-too-high", "lr-zero", "lr-too-low"))
def schedule_ahead_of_optimizer(source: Source, strength: float) -> Iterator[Change]:
    for statement, owner in schedule_steps(source):
        for stepped, _ in updates(source):
            if stepped in source.siblings(statement) and is_schedule(owner):
                moved = source.before(stepped, source.code(statement))
                yield many(moved, source.drop(statement))
