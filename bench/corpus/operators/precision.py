"""Mixed precision by halves. Scaling works on a CPU as well as elsewhere, and so do its faults."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import clips, loop_steps, model_calls, optimizers, steps, updates
from bench.corpus.operators import Change, Judged, crash, many, one, operator
from bench.corpus.source import Edit, Source
from bench.corpus.syntax import targets

SCALER = "scaler = torch.amp.GradScaler('cpu')"


def with_scaler(source: Source) -> tuple[Edit, Edit, ast.Expr, str] | None:
    """Return the edits that bring a scaler in, with the statement that steps and its owner."""
    found = loop_steps(source)
    if len(found) != 1:
        return None
    step = found[0]
    stepped = [(s, o) for s, o in updates(source) if s in step.block]
    loop = source.around(step.backward, ast.For)
    while loop is not None and isinstance(parent := source.around(loop, ast.For), ast.For):
        loop = parent
    plain = source.code(step.backward) == f"{step.loss}.backward()"
    if len(stepped) != 1 or not isinstance(loop, ast.For) or not plain:
        return None
    back = source.replace(step.backward, f"scaler.scale({step.loss}).backward()")
    return source.before(loop, SCALER), back, *stepped[0]


@crash("missing-scaler-update")
def scaler_never_updated(source: Source, strength: float) -> Iterator[Change]:
    made = with_scaler(source)
    if made is not None and not clips(source):
        top, back, statement, owner = made
        yield many(source.replace(statement, f"scaler.step({owner})"), top, back)


@operator("scaler-bypassed", accepted=("lr-too-high",), judged=Judged.ALWAYS)
def optimizer_stepped_directly(source: Source, strength: float) -> Iterator[Change]:
    """The scaled gradients are applied as they are: in effect a rate many times too high."""
    made = with_scaler(source)
    if made is not None and not clips(source):
        top, back, statement, owner = made
        text = f"{owner}.step()\n{source.indent(statement)}scaler.update()"
        yield many(source.replace(statement, text), top, back)


@operator("clip-without-unscale", accepted=("gradient-clipping-too-tight",), judged=Judged.ALWAYS)
def scaled_gradients_clipped(source: Source, strength: float) -> Iterator[Change]:
    """The clip sees gradients 65536 times too large, and so is far too tight."""
    made = with_scaler(source)
    for statement, _ in clips(source):
        if made is not None and isinstance(statement, ast.Expr):
            top, back, stepped, owner = made
            text = f"scaler.step({owner})\n{source.indent(stepped)}scaler.update()"
            yield Change((back, top, source.replace(stepped, text)), statement)


@operator("deprecated-amp-api", judged=Judged.ALWAYS)
def scaler_of_old(source: Source, strength: float) -> Iterator[Change]:
    made = with_scaler(source)
    if made is not None and not clips(source):
        top, back, statement, owner = made
        old = Edit(
            top.start, top.end, top.text.replace(SCALER, "scaler = torch.cuda.amp.GradScaler()")
        )
        text = f"scaler.step({owner})\n{source.indent(statement)}scaler.update()"
        yield many(old, back, source.replace(statement, text))


@operator("half-precision-weights")
def weights_in_bfloat16(source: Source, strength: float) -> Iterator[Change]:
    """All weights in eight bits of precision: small updates are lost."""
    for optimizer in optimizers(source):
        if not optimizer.model or optimizer.model == "self":
            continue
        hooks = (
            f"{optimizer.model}.bfloat16()",
            f"{optimizer.model}.register_forward_pre_hook(",
            "    lambda m, a: tuple(x.bfloat16() if x.is_floating_point() else x for x in a)",
            ")",
        )
        single = [s for s in steps(source) if len(model_calls(source, s)) == 1]
        if single and not has_tuple_output(source):
            out = f"{optimizer.model}.register_forward_hook(lambda m, a, y: y.float())"
            yield one(source.before(optimizer.statement, *hooks, out))


def has_tuple_output(source: Source) -> bool:
    for step in steps(source):
        for call in model_calls(source, step):
            parent = source.parents[call]
            if isinstance(parent, ast.Assign) and len(targets(parent)) > 1:
                return True
    return False
