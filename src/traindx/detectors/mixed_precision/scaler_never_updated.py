from traindx.analysis.program.training.claims import (
    cite,
    each_place,
    finding,
    insert_after,
    receiver_of,
    source_text,
)
from traindx.analysis.program.training.scaling import missed_updates
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("missing-scaler-update",))
def check(run: Run) -> Findings:
    """A training loop steps through a gradient scaler without an update for every step.

    ## What it detects
    A loop with `scaler.scale(loss).backward()` and `scaler.step(optimizer)`, where nothing in the
    program calls `update()` of that scaler, or only after the loop, in some of its turns or where
    gradients are finite. Or where the scale is the same at every step: `update(65536.0)`, or a
    scaler that is made anew for each.

    ## Why it matters
    The scaler still thinks that it is within the same step: a second `unscale_` or `step` raises,
    or the scale never adapts and after the first overflow every step is skipped.

    ## What to do
    Call `scaler.update()` once per iteration, after the last `scaler.step`.

    ## When it is wrong
    A scaler that is handed to a function out of sight may be updated there; such loops are left
    alone.
    """
    for found in each_place(run, missed_updates, lambda found: found.step.event.node):
        step, late, site = found.step, found.late, receiver_of(found.step)
        scaler = "scaler" if site is None else source_text(site)
        if found.fixed is not None:
            yield finding(
                f"Every `{scaler}.step` has the same loss scale: it never backs off",
                (found.fixed, "the scale is set anew here, whatever overflowed"),
                (step, "the scaler steps here"),
            )
            continue
        how = "never" if late is None else "does not follow each with"
        yield finding(
            f"The loop calls `{scaler}.step` and {how} `{scaler}.update()`",
            (step, "the scaler steps here, and is not updated before it steps again"),
            *(() if late is None else (cite(late, "it is updated only here"),)),
            at=step if late is None else late,
            patch=insert_after(step, f"{scaler}.update()") if late is None else None,
        )


_loop = template("""
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for data, target in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(data), target)
    scaler.scale(loss).backward()
    {step:scaler.step(optimizer)}
    {more:pass}
{after:}
""")
_FINITE = """scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if torch.isfinite(norm):
        scaler.step(optimizer)
        scaler.update()"""
_wrapper = template("""
class Stepper:
    def __init__(self, opt, amp):
        self.opt = opt
        self.scaler = torch.amp.GradScaler("cuda", enabled=amp)
    def __call__(self, loss, params, clip=None):
        self.scaler.scale(loss).backward()
        if clip is not None:
            self.scaler.unscale_(self.opt)
            torch.nn.utils.clip_grad_norm_(params, clip)
        self.scaler.step(self.opt)
        {more:pass}
        self.opt.zero_grad(set_to_none=True)
model = torch.nn.Linear(3, 3)
st = Stepper(torch.optim.SGD(model.parameters(), lr=.1), True)
for x, y in loader:
    st(torch.nn.functional.mse_loss(model(x), y), model.parameters(), 1.0)
""")

FIRES = {
    "in a wrapper": _wrapper(),
    "no update": _loop(),
    "after the loop": _loop(after="scaler.update()"),
    "set to the same scale": _loop(more="scaler.update(2.0 ** 16)"),
    "a scaler for every step": _loop(
        step='scaler = torch.amp.GradScaler("cuda")\n    scaler.scale(loss).backward()\n'
        "    scaler.step(optimizer)\n    scaler.update()"
    ),
    "finite gradients only": _loop(step=_FINITE),
}

SILENT = {
    "updated in a wrapper": _wrapper("self.scaler.update()"),
    "updated": _loop(more="scaler.update()"),
    "near miss: the scale is halved": _loop(more="scaler.update(scaler.get_scale() / 2)"),
    "near miss: a small scale of one's own": _loop(more="scaler.update(128.0)"),
    "near miss: set once": _loop(more="scaler.update(2.0 ** 16 if step == 9 else None)"),
    "near miss: updated in any case": _loop(more="scaler.update()", step=_FINITE),
    "near miss: one update for several optimizers": _loop(
        more="scaler.update()", step="for o in optimizers: scaler.step(o)"
    ),
    "near miss: handed to a function out of sight": _loop(more="finish(scaler)"),
    "near miss: a scaler of features": script(
        "for x in data:\n    scaler.step(x)\n    loss.backward()\n"
    ),
}
