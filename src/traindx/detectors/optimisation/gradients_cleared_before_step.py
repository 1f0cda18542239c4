"""Gradients are cleared between backward and step."""

from traindx.analysis.program.execution.values import Answer, Value, constant
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import (
    argument_of,
    cite,
    finding,
    is_same_function,
    move_after,
    source_text,
)
from traindx.analysis.program.training.feeds import feeds
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.updates import (
    Repetition,
    Update,
    UpdateWindow,
    clears,
    count_of_turns,
    happens_with,
    has_closure,
    is_handed_on,
    period_of,
    repetitions,
    updates,
    writes_gradients,
)
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

CAUSE = "gradients-cleared-before-step"


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Gradients are cleared after backward and before the optimizer steps.

    ## What it detects
    `backward`, then something that clears the gradients of an optimizer, then its step, with no
    other `backward` in between. Or a step that waits for several batches, while gradients are
    cleared for each of them.

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
        for update in updates(story):
            cleared = _cleared_before(update)
            if cleared is not None and update.step.event.node not in seen:
                seen |= {update.step.event.node, update.backward.event.node}
                yield _wiped(cleared, update.step)
        for repeated in repetitions(story):
            found = _thrown_away(story, repeated)
            if found is not None and repeated.first.event.node not in seen:
                seen.add(repeated.first.event.node)
                yield found


def _cleared_before(update: Update) -> Deed | None:
    """What clears the gradients of a backward pass before they are applied."""
    optimizer, story, step = update.optimizer, update.story, update.step
    if optimizer is None or has_closure(step):
        return None
    if feeds(story, update.backward, optimizer) is Answer.NO:
        return None  # its gradients are of other parameters
    for zero in reversed(update.between.does(Do.ZERO_GRAD)):
        if clears(zero, optimizer, story) is not Answer.YES:
            continue
        if not happens_with(zero.event, step.event):
            continue
        after = UpdateWindow(story, zero.event, step.event).events
        models = [d.subject for d in story.does(Do.FORWARD)]
        if writes_gradients(story, after) or is_handed_on(story, after, optimizer, *models):
            return None
        return zero
    return None


def _wiped(cleared: Deed, step: Deed) -> Finding:
    is_call = cleared.event.name == ".zero_grad"
    is_near = (
        is_call and cleared.event.turns == step.event.turns and is_same_function(cleared, step)
    )
    what = f"wiped by {cleared.text}.zero_grad()" if is_call else "set to zero by hand"
    return finding(
        f"Gradients are {what} between backward and the step",
        CAUSE,
        cleared,
        cite(cleared, "gradients are cleared here"),
        cite(step, "and the step comes only here"),
        is_symptom=True,
        patch=move_after(cleared, step) if is_call and is_near else None,
    )


def _thrown_away(story: Story, repeated: Repetition) -> Finding | None:
    """A step every n batches, and gradients that are cleared at every one."""
    between = repeated.between
    steps = [d for d in between.does(Do.STEP) if d.subject is not None]
    zeros = [d for d in between.does(Do.ZERO_GRAD) if happens_with(d.event, repeated.second.event)]
    for step in steps:
        period = period_of(story, step.event)
        if period is None or period_of(story, repeated.second.event) or constant(period) == 1:
            continue
        zero = next((z for z in zeros if z.subject is step.subject), None)
        if zero is None or writes_gradients(story, between.events) or len(steps) > 1:
            continue
        return _in_vain(story, zero, step, period)
    return None


def _in_vain(story: Story, zero: Deed, step: Deed, period: Value) -> Finding:
    number, turns = constant(period), count_of_turns(story, step.event)
    count = None if turns is None else argument_of(turns, 1)
    often = str(number) if number or count is None else source_text(count)
    return finding(
        f"The step waits for {often} batches, and gradients are cleared at every one",
        CAUSE,
        zero,
        cite(zero, "gradients are cleared here, for every batch"),
        cite(step, f"and the step comes every {often} batches"),
        strength=Strength.STRONG if number else Strength.MODERATE,
        hint=None if number else Strength.STRONG,
    )


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in train_loader:
    loss = criterion(model(data), target)
{order}
"""


def _loop(*order: str) -> Run:
    body = "\n".join(f"    {line}" for line in order)
    return make_run(sources={"train.py": _LOOP.format(order=body)})


def _waiting(count: int, *order: str) -> Run:
    text = _LOOP.replace("for data, target in", f"every = {count}\nfor i, (data, target) in")
    body = "\n".join(f"    {line}" for line in order)
    return make_run(sources={"train.py": text.format(order=body)})


_WAITS = ("if (i + 1) % every == 0:", "    optimizer.step()")

_HELPERS = """
import torch
from torch import nn
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
"""

FIRES = {
    "by hand, in a helper": make_run(sources={"train.py": _HELPERS}),
    "between": _loop("loss.backward()", "optimizer.zero_grad()", "optimizer.step()"),
    "between, and clipped": _loop(
        "loss.backward()",
        "optimizer.zero_grad()",
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "optimizer.step()",
    ),
    "accumulated in vain": _waiting(4, "optimizer.zero_grad()", "loss.backward()", *_WAITS),
}

_HELPERS_SOUND = """
import torch
from torch import nn
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
"""

SILENT = {
    "near miss: gradients of an attack are cleared": make_run(sources={"train.py": _HELPERS_SOUND}),
    "before": _loop("optimizer.zero_grad()", "loss.backward()", "optimizer.step()"),
    "after": _loop("loss.backward()", "optimizer.step()", "optimizer.zero_grad()"),
    "near miss: cleared with the step": _waiting(
        4, "loss.backward()", *_WAITS, "    optimizer.zero_grad()"
    ),
    "near miss: every batch is a step": _waiting(
        1, "optimizer.zero_grad()", "loss.backward()", *_WAITS
    ),
    "near miss: another optimizer is cleared": _loop(
        "loss.backward()", "other.zero_grad()", "optimizer.step()"
    ),
    "near miss: gradients are set by hand": _loop(
        "loss.backward()",
        "gradients = [p.grad.clone() for p in fast.parameters()]",
        "optimizer.zero_grad()",
        "for p, g in zip(model.parameters(), gradients):",
        "    p.grad = g",
        "optimizer.step()",
    ),
    "near miss: gradients are set out of sight": _loop(
        "loss.backward()", "optimizer.zero_grad()", "share(model)", "optimizer.step()"
    ),
    "near miss: computed in the step": _loop(
        "loss.backward()", "optimizer.zero_grad()", "optimizer.step(closure)"
    ),
    "near miss: summed by hand over the batches": _waiting(
        4,
        "optimizer.zero_grad()",
        "loss.backward()",
        "sums = [s + p.grad for s, p in zip(sums, model.parameters())]",
        "for p, s in zip(model.parameters(), sums):",
        "    p.grad = s.clone()",
        *_WAITS,
    ),
    "near miss: two backwards": _loop(
        "loss.backward()",
        "optimizer.zero_grad()",
        "(loss * 2).backward()",
        "optimizer.step()",
    ),
}
