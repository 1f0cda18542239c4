import numpy as np

from traindx.analysis.program.execution.values import Result
from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.claims import each_place, finding, source_text
from traindx.analysis.program.training.unscaled_halves import unscaled_halves
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("fp16-overflow",))
def check(run: Run) -> Findings:
    """The forward pass runs in float16 on CUDA and nothing scales the loss.

    ## What it detects
    A backward pass and step whose loss is computed under `autocast` on CUDA with float16 (its
    default there), in a program that knows no gradient scaler and no framework that brings one. Or
    one that casts the loss itself to float16 before backward, as a scale written by hand may need
    it; more so where the loss is infinite or NaN.

    ## Why it matters
    Gradients below 6e-8 become zero and large ones overflow: the loss stalls, or turns NaN.

    ## What to do
    Use `torch.amp.GradScaler("cuda")`, or `dtype=torch.bfloat16`, which needs no scaling.

    ## When it is wrong
    Models with large gradients may train without scaling; and the default type can be set globally.
    """
    for found in each_place(run, unscaled_halves, lambda found: found.backward.event.node):
        if found.cast is not None:
            yield _cast_finding(run, found.backward, found.cast)
        elif found.context is not None:
            yield _context_finding(found.backward, found.context)


def _context_finding(backward: Deed, context: Result) -> Finding:
    return finding(
        "The loss is computed in float16 and its gradients are not scaled",
        (context, f"float16 by `{source_text(context)}`"),
        (backward, "backward without a scaler"),
        is_symptom=False,
    )


def _cast_finding(run: Run, backward: Deed, cast: Result) -> Finding:
    series = run.get("loss/train")
    is_broken = series is not None and not bool(np.isfinite(series.values).all())
    strength = Strength.STRONG if is_broken else Strength.MODERATE
    then = ", and it is infinite or NaN" if is_broken else ""
    return finding(
        f"The loss is cast to float16 before backward, where the largest number is 65504{then}",
        (cast, f"`{source_text(cast)}`, and backward starts from it"),
        at=backward,
        strength=strength,
        hint=strength,
        is_symptom=is_broken,
    )


_loop = template("""
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{made:}
for data, target in loader:
    optimizer.zero_grad()
    with {context}:
        loss = criterion(model(data), target)
    {step:loss.backward(); optimizer.step()}
""")

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
    "near miss: bfloat16 by position": _loop('torch.autocast("cuda", torch.bfloat16)'),
    "on the CPU": _loop('torch.autocast("cpu")'),
    "near miss: a scaler": _loop(
        'torch.autocast("cuda")',
        'scaler = torch.amp.GradScaler("cuda")',
        "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()",
    ),
    "near miss: decided at run time": _loop('torch.autocast("cuda", dtype=kind)'),
}
