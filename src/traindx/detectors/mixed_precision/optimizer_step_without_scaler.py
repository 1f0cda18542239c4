from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import (
    each_place,
    finding,
    is_same_function,
    receiver_of,
    replace,
    replace_statement,
    source_text,
)
from traindx.analysis.program.training.scaling import BypassedScaler, bypassed_scalers
from traindx.analysis.program.training.updates import Update
from traindx.examples import script, template
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("scaler-bypassed",))
def check(run: Run) -> Findings:
    """The loss is scaled and the optimizer is stepped without the scaler.

    ## What it detects
    A backward pass from a loss that a gradient scaler scaled, and then a plain `optimizer.step()`:
    without `unscale_`, or with it and on no condition that keeps infinite gradients out. And a step
    through a scaler whose `scale` is called nowhere, or not for all losses whose gradients it gets.

    ## Why it matters
    The gradients are up to 65536 times too large. SGD diverges at once; Adam hides it until an
    overflow puts Inf into the weights, which the scaler would have skipped.

    ## What to do
    Replace `optimizer.step()` by `scaler.step(optimizer)` and `scaler.update()`.

    ## When it is wrong
    A loop that divides the gradients by the scale itself writes `.grad`; it is left alone. So is a
    `scale` of something else than torch's gradient scaler (a weight that ramps a loss up), a scaler
    that is switched off, and an optimizer that is given the scaler.
    """
    for found in each_place(run, bypassed_scalers, lambda found: found.update.step.event.node):
        yield _bypassed(found.update) if found.plain is None else _unscaled(found)


def _unscaled(found: BypassedScaler) -> Finding:
    backward, step = found.plain or found.update.backward, found.update.step
    scaler, loss = receiver_of(step), receiver_of(backward)
    name = "scaler" if scaler is None else source_text(scaler)
    text = "loss" if loss is None else source_text(loss)
    return finding(
        f"`{name}` steps the optimizer and never scaled `{text}`",
        (backward, "backward on the loss as it is"),
        (step, f"and {name}.step divides the gradients by a scale that nobody applied"),
        patch=None if loss is None else replace(loss, f"{name}.scale({text})"),
    )


def _bypassed(update: Update) -> Finding:
    backward, step = update.backward, update.step
    scaled = None if backward.subject is None else receiver_of(backward.subject)
    name = "scaler" if scaled is None else source_text(scaled)
    has_update = bool(update.story.does(Do.SCALER_UPDATE))
    lines = [f"{name}.step({step.text})", *([] if has_update else [f"{name}.update()"])]
    return finding(
        f"The loss is scaled by `{name}` and `{step.text}.step()` bypasses it",
        (backward, "gradients are scaled here"),
        (step, "and applied without the scaler here"),
        at=step,
        patch=replace_statement(step, *lines) if is_same_function(step, backward) else None,
    )


_loop = template("""
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = {scaler:torch.amp.GradScaler("cuda")}
for data, target in loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
    {backward}
    {step}
""")

_SCALED = "scaler.scale(loss).backward()"

_PHASES = """
scaler = torch.amp.GradScaler("cuda")
teacher, student = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
first, second = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (teacher, student))
def update(loss, optimizer):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
for x, y in loader:
    update(torch.nn.functional.cross_entropy(teacher(x), y), first)
for x, y in loader:
    second.zero_grad()
    loss = torch.nn.functional.mse_loss(student(x), teacher(x).detach())
    {more}
    loss.backward()
    scaler.step(second)
    scaler.update()
"""
_phases = template(_PHASES, more="pass")

FIRES = {
    "in a wrapper": script("""
class Stepper:
    def __init__(self, opt, amp):
        self.opt = opt
        self.scaler = torch.amp.GradScaler("cuda", enabled=amp)
    def __call__(self, loss, params, clip=None):
        self.scaler.scale(loss).backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(params, clip)
        self.opt.step()
        self.scaler.update()
        self.opt.zero_grad(set_to_none=True)
model = torch.nn.Linear(3, 3)
st = Stepper(torch.optim.SGD(model.parameters(), lr=.1), True)
for x, y in loader:
    st(torch.nn.functional.mse_loss(model(x), y), model.parameters(), 1.0)
"""),
    "the second model's loss": _phases(),
    "plain step": _loop(_SCALED, "optimizer.step()"),
    "never asked to scale": _loop("loss.backward()", "scaler.step(optimizer); scaler.update()"),
    "made on a condition": _loop(_SCALED, "optimizer.step()", "GradScaler() if amp else None"),
}

SILENT = {
    "near miss: scaled on a condition": _phases(more="if amp:\n        loss = scaler.scale(loss)"),
    "scaler steps": _loop(_SCALED, "scaler.step(optimizer); scaler.update()"),
    "no scaling": _loop("loss.backward()", "optimizer.step()"),
    "near miss: scaled by a function out of sight": _loop(
        "run_backward(scaler, loss); loss.backward()", "scaler.step(optimizer); scaler.update()"
    ),
    "near miss: scaled on the other way": _loop(
        "(scaler.scale(loss) if amp else loss).backward()", "scaler.step(optimizer)"
    ),
    "near miss: a weight that ramps the loss up": _loop(
        "ramp.scale(loss).backward()", "optimizer.step()"
    ),
    "near miss: a scaler of its own kind": _loop(_SCALED, "optimizer.step()", "TermScaler(1000)"),
    "near miss: switched off": _loop(_SCALED, "optimizer.step()", "GradScaler(enabled=False)"),
    "near miss: two paths": _loop(
        _SCALED,
        "if amp:\n        scaler.step(optimizer)\n        scaler.update()\n"
        "    else:\n        optimizer.step()",
    ),
}
