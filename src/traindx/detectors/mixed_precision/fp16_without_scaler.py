"""Training in float16 without a gradient scaler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.values import Kind

AUTOCASTS = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast")
LEVELS = 5  # of operations between a cast and backward
ON_WAY = ("mean", "sum", "mul", "div", "clone", "contiguous")
SCALED = ("scaler", "deepspeed", "apex", "Accelerator", "Fabric", "loss_scale")


@detector(needs=("source",), suggests=("fp16-overflow",))
def check(run: Run) -> Iterator[Finding]:
    """The forward pass runs in float16 on CUDA and nothing scales the loss.

    ## What it detects
    A training loop whose loss is computed under `autocast` on CUDA with float16 (its default
    there), in a file that knows no gradient scaler and no framework that brings one. Or one that
    casts the loss itself to float16 before backward, as a scale written by hand may need it; more
    so where the loss is infinite or NaN.

    ## Why it matters
    Gradients below 6e-8 become zero and large ones overflow: the loss stalls, or turns NaN.

    ## What to do
    Use `torch.amp.GradScaler("cuda")`, or `dtype=torch.bfloat16`, which needs no scaling.

    ## When it is wrong
    Models with large gradients may train without scaling; and the default type can be set globally.
    """
    for loop in training_loops(project_of(run)):
        backward = loop.first(Do.BACKWARD)
        if backward is None or not loop.does(Do.STEP) or not _is_plain(backward):
            continue
        cast = _cast(backward, backward.subject)
        if cast is not None:
            yield _cast_finding(run, backward, cast)
            continue
        context = _float16_context(loop)
        if context is None or any(w in loop.module.text for w in SCALED):
            continue
        yield Finding(
            claim="The loss is computed in float16 and its gradients are not scaled",
            strength=Strength.MODERATE,
            evidence=(
                loop.module.cite(context, f"float16 by `{ast.unparse(context)}`"),
                backward.module.cite(backward.node, "backward without a scaler"),
            ),
            suggests={"fp16-overflow": Strength.MODERATE},
            location=loop.module.location(context),
        )


def _cast_finding(run: Run, backward: Act, cast: ast.expr) -> Finding:
    losses = run.get("loss/train")
    is_broken = losses is not None and not bool(np.isfinite(losses.values).all())
    strength = Strength.STRONG if is_broken else Strength.MODERATE
    module = backward.module
    then = ", and it is infinite or NaN" if is_broken else ""
    return Finding(
        claim=f"The loss is cast to float16 before backward: it ends at 65504{then}",
        strength=strength,
        evidence=(module.cite(cast, f"`{ast.unparse(cast)}`, and backward starts from it"),),
        suggests={"fp16-overflow": strength},
        is_symptom=is_broken,
        location=backward.location,
    )


def _cast(backward: Act, node: ast.expr | None, levels: int = LEVELS) -> ast.expr | None:
    """The cast to float16 of the value that backward starts from, scaled or not."""
    if node is None or levels == 0:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        sides = (_cast(backward, side, levels - 1) for side in (node.left, node.right))
        return next((side for side in sides if side is not None), None)
    if isinstance(node, ast.Name):
        scope: ast.AST = backward.function or backward.module.tree
        assigned = (n for n in ast.walk(scope) if isinstance(n, ast.Assign))
        named = [n for n in assigned if any(key_of(t) == node.id for t in n.targets)]
        made = (n for n in named if n.lineno <= backward.line)
        last = max(made, key=lambda n: n.lineno, default=None)
        return _cast(backward, last.value if last is not None else None, levels - 1)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    given = [backward.module.qualified(a) for a in (*node.args, *(k.value for k in node.keywords))]
    is_cast = node.func.attr in ("to", "type") and bool({*given} & {"torch.float16", "torch.half"})
    if is_cast or (node.func.attr == "half" and not node.args):
        return node
    return _cast(backward, node.func.value, levels - 1) if node.func.attr in ON_WAY else None


def _is_plain(backward: Act) -> bool:
    return backward.value.kind not in (Kind.ACCELERATOR, Kind.MODEL)


def _float16_context(loop: TrainingLoop) -> ast.Call | None:
    losses = loop.does(Do.LOSS, Do.FORWARD)
    if not any(c in AUTOCASTS for a in losses for c in a.contexts):
        return None
    for node in ast.walk(loop.node):
        if isinstance(node, ast.With):
            for item in node.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and _is_float16(loop.module, call):
                    return call
    return None


def _is_float16(module: Module, call: ast.Call) -> bool:
    name = module.qualified(call.func) or ""
    if name not in AUTOCASTS or any(k.arg is None for k in call.keywords):
        return False
    enabled = argument(call, "enabled")
    if enabled is not None and literal(enabled) is not True:
        return False
    on_cuda = name.startswith("torch.cuda") or literal(argument(call, "device_type", 0)) == "cuda"
    given = argument(call, "dtype")
    is_half = given is None or module.qualified(given) in ("torch.float16", "torch.half")
    return on_cuda and is_half


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{made}
for data, target in loader:
    optimizer.zero_grad()
    with {context}:
        loss = criterion(model(data), target)
    {step}
"""


def _loop(context: str, made: str = "", step: str = "loss.backward(); optimizer.step()") -> Run:
    text = _LOOP.format(context=context, made=made, step=step)
    return make_run(sources={"train.py": text})


FIRES = {
    "the default type on CUDA": _loop('torch.autocast("cuda")'),
    "the loss is cast": _loop(
        "nullcontext()", step="(loss.half() * 1024).backward(); optimizer.step()"
    ),
    "the loss is cast and named": _loop(
        "nullcontext()",
        step="big = loss.to(torch.float16) * 8.0; big.backward(); optimizer.step()",
    ),
    "float16 by name": _loop('torch.autocast(device_type="cuda", dtype=torch.float16)'),
}

SILENT = {
    "near miss: a scale without a cast": _loop(
        "nullcontext()", step="(loss * 1024).backward(); optimizer.step()"
    ),
    "near miss: the target is cast": _loop(
        "nullcontext()", step="criterion(out, target.half()).backward(); optimizer.step()"
    ),
    "bfloat16": _loop('torch.autocast("cuda", dtype=torch.bfloat16)'),
    "on the CPU": _loop('torch.autocast("cpu")'),
    "near miss: a scaler": _loop(
        'torch.autocast("cuda")',
        'scaler = torch.amp.GradScaler("cuda")',
        "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()",
    ),
    "near miss: decided at run time": _loop('torch.autocast("cuda", dtype=kind)'),
}
