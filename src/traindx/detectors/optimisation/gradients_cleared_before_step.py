from traindx.analysis.program.execution.values import constant
from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.claims import (
    argument_of,
    finding,
    is_same_function,
    move_after,
    program_of,
    source_text,
)
from traindx.analysis.program.training.cleared_gradients import (
    LateStep,
    cleared_updates,
    late_steps,
    short_accumulations,
)
from traindx.examples import script, template
from traindx.registry import Finding, Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("gradients-cleared-before-step",))
def check(run: Run) -> Findings:
    """Gradients are cleared after backward and before the optimizer steps.

    ## What it detects
    `backward`, then something that clears the gradients of an optimizer, then its step, with no
    other `backward` in between. Or a step that waits for several batches, or for the end of the
    loop over them, while gradients are cleared for each of them.

    ## Why it matters
    The optimizer steps on zeros (or on nothing): the weights do not move, apart from momentum and
    weight decay, and no error is raised. Where the step waits, all batches but the last are
    computed for nothing.

    ## What to do
    Move `zero_grad()` before `backward()`, or after `step()`; where gradients accumulate, under the
    condition of the step.

    ## When it is wrong
    With several optimizers the cleared one may not be the stepped one; only its own gradients
    count. Gradients that are written by hand in between (`p.grad = …`), or may be, are left alone.
    A number of batches that is 1 in the end does no harm; where it is out of sight, this is a hint.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for update, zero in cleared_updates(story):
            if update.step.event.node not in seen:
                seen |= {update.step.event.node, update.backward.event.node}
                yield _wiped(zero, update.step)
        for late in late_steps(story):
            if late.step.event.node not in seen:
                seen |= {late.step.event.node, late.backward.event.node}
                yield _late(late)
        for short in short_accumulations(story):
            if short.backward.event.node not in seen:
                seen.add(short.backward.event.node)
                number = constant(short.period)
                count = None if short.turns is None else argument_of(short.turns, 1)
                often = str(number) if number or count is None else source_text(count)
                yield finding(
                    f"The step waits for {often} batches, and gradients are cleared at every one",
                    (short.zero, "gradients are cleared here, for every batch"),
                    (short.step, f"and the step comes every {often} batches"),
                    strength=Strength.STRONG if number else Strength.MODERATE,
                    hint=None if number else Strength.STRONG,
                    is_symptom=False,
                )


def _wiped(cleared: Deed, step: Deed) -> Finding:
    is_call = cleared.event.name == ".zero_grad"
    is_near = cleared.event.turns == step.event.turns and is_same_function(cleared, step)
    what = f"wiped by {cleared.text}.zero_grad()" if is_call else "set to zero by hand"
    return finding(
        f"Gradients are {what} between backward and the step",
        (cleared, "gradients are cleared here"),
        (step, "and the step comes only here"),
        patch=move_after(cleared, step) if is_call and is_near else None,
    )


def _late(late: LateStep) -> Finding:
    return finding(
        "The step comes after the loop over batches, and gradients are cleared at every batch",
        (late.zero, "gradients are cleared here, for every batch"),
        (late.step, "and the step comes once, with those of the last batch"),
        at=late.step,
    )


_LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
every = {every}
for i, (data, target) in enumerate(train_loader):
    loss = criterion(model(data), target)
    {order}
"""


def _loop(*order: str, every: int = 4) -> Run:
    return script(_LOOP, every=every, order="\n    ".join(order))


_CLEAR, _BACKWARD, _STEP = "optimizer.zero_grad()", "loss.backward()", "optimizer.step()"
_WAITS = ("if (i + 1) % every == 0:", "    optimizer.step()")

_after_loop = template("""
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    {before:pass}
    for x, y in loader:
        {inside:pass}
        nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
""")

FIRES = {
    "a step after the loop over batches": _after_loop(inside="opt.zero_grad()"),
    "by hand, in a helper": script("""
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def reset(m):
    for p in m.parameters():
        p.grad = None
def backward(loss):
    loss.backward()
while True:
    x, y = next(it)
    backward(nn.functional.mse_loss(model(x), y))
    reset(model)
    opt.step()
"""),
    "between": _loop(_BACKWARD, _CLEAR, _STEP),
    "between, and clipped": _loop(
        _BACKWARD, _CLEAR, "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)", _STEP
    ),
    "accumulated in vain": _loop(_CLEAR, _BACKWARD, *_WAITS),
}

SILENT = {
    "near miss: the gradient of all batches": _after_loop("opt.zero_grad()"),
    "near miss: gradients of an attack are cleared": script("""
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    x.requires_grad_()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    adv = x + 0.1 * x.grad.sign()
    opt.zero_grad()
    nn.functional.cross_entropy(model(adv.detach()), y).backward()
    opt.step()
"""),
    "before": _loop(_CLEAR, _BACKWARD, _STEP),
    "after": _loop(_BACKWARD, _STEP, _CLEAR),
    "near miss: cleared with the step": _loop(_BACKWARD, *_WAITS, "    optimizer.zero_grad()"),
    "near miss: every batch is a step": _loop(_CLEAR, _BACKWARD, *_WAITS, every=1),
    "near miss: another optimizer is cleared": _loop(_BACKWARD, "other.zero_grad()", _STEP),
    "near miss: gradients are set by hand": _loop(
        _BACKWARD,
        "gradients = [p.grad.clone() for p in fast.parameters()]",
        _CLEAR,
        "for p, g in zip(model.parameters(), gradients):",
        "    p.grad = g",
        _STEP,
    ),
    "near miss: gradients are set out of sight": _loop(_BACKWARD, _CLEAR, "share(model)", _STEP),
    "near miss: computed in the step": _loop(_BACKWARD, _CLEAR, "optimizer.step(closure)"),
    "near miss: summed by hand over the batches": _loop(
        _CLEAR,
        _BACKWARD,
        "sums = [s + p.grad for s, p in zip(sums, model.parameters())]",
        "for p, s in zip(model.parameters(), sums):",
        "    p.grad = s.clone()",
        *_WAITS,
    ),
    "near miss: two backwards": _loop(_BACKWARD, _CLEAR, "(loss * 2).backward()", _STEP),
}
