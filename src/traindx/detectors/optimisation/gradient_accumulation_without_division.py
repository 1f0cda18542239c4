from traindx.analysis.program.training.accumulation import (
    unscaled_accumulations,
)
from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.claims import (
    argument_of,
    each_place,
    finding,
    is_same_function,
    receiver_of,
    replace,
    source_text,
)
from traindx.analysis.program.training.scaling import scaler_of
from traindx.analysis.program.training.updates import (
    ignored_accumulation,
)
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("gradient-accumulation-unscaled",))
def check(run: Run) -> Findings:
    """Gradients of several batches are summed and the loss is never divided by their number.

    ## What it detects
    A loop that calls `backward` for every batch and steps and clears only every n batches, or a
    loop over the micro-batches of one update with the step after it, where the loss is averaged
    over the batch and reaches `backward` unchanged. And an `Accelerator` that is set to accumulate
    in a loop that steps at every batch: it is not run under `accelerator.accumulate()`, or the
    optimizer was not prepared.

    ## Why it matters
    The gradients of n batches add up, so the step is n times that of one large batch: with SGD the
    learning rate is n times what was meant. Adam hides it, until clipping or weight decay meet it.

    ## What to do
    Divide: `(loss / n).backward()`.

    ## When it is wrong
    A learning rate that was chosen for the sum is right as it is: one that is computed is left
    alone. So are a loss that is summed on purpose, and frameworks that divide themselves.
    """
    for found in each_place(run, unscaled_accumulations, at=lambda f: f.backward.event.node):
        text = "n" if found.count is None else source_text(found.count)
        is_near = found.count is not None and is_same_function(found.count, found.backward)
        strength = Strength.MODERATE if found.is_rescaled else Strength.STRONG
        yield finding(
            f"Gradients of {text} batches add up and the loss is not divided by their number",
            (found.backward, "backward on the whole loss, every batch"),
            (found.step, f"the step, every {text} batches"),
            strength=strength,
            hint=strength if found.is_rescaled else None,
            is_symptom=not found.is_rescaled,
            patch=_patch(found.backward, text) if is_near else None,
        )
    for ignored in each_place(run, ignored_accumulation, at=lambda f: f.step.event.node):
        why = "`accelerator.accumulate()` is not used"
        if ignored.is_asked:
            why = "it was not given to `accelerator.prepare()`"
        yield finding(
            f"The optimizer steps at every batch: {why}",
            (ignored.engine, "the loss is divided by `gradient_accumulation_steps`"),
            (ignored.step, "and each batch is applied by itself"),
            at=ignored.step,
        )


def _patch(backward: Deed, count: str) -> str | None:
    """Divide the loss, before the scaler where there is one."""
    if scaler_of(backward.subject) is not None and backward.subject is not None:
        loss = argument_of(backward.subject)
        return None if loss is None else replace(loss, f"{source_text(loss)} / {count}")
    loss = receiver_of(backward)
    return None if loss is None else replace(loss, f"({source_text(loss)} / {count})")


_LOOP = """
criterion = nn.CrossEntropyLoss({reduction})
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.1)
for i, (data, target) in enumerate(loader):
    loss = criterion(model(data), target)
    {divide}
    loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
"""

_loop = template(_LOOP, divide="pass", reduction="", optimizer="SGD")

_CHUNKS = """
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for x, y in loader:
    opt.zero_grad()
    for part, target in zip(x.chunk(4), y.chunk(4)):
        error = nn.functional.mse_loss(model(part), target){divide}
        error.backward()
    opt.step()
"""

_micro_steps = template("""
import itertools
micro_steps = 8
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
stream = itertools.cycle(loader)
for it in range(1000):
    opt.zero_grad(set_to_none=True)
    for micro in range({count:micro_steps}):
        x, y = next(stream)
        logp = F.log_softmax(net(x), -1)
        loss = -logp.gather(1, y[:, None]).mean()
        loss.backward()
    {after:pass}
    opt.step()
""")

_counted = template("""
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
pending = 0
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    if scaler.is_enabled():
        scaler.scale(loss / 8).backward()
    else:
        {backward:loss.backward()}
    pending += 1
    if pending == 8:
        opt.step()
        opt.zero_grad()
        {after:pending = 0}
""")

_engine = template("""
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=8)
model = nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters())
{prepared:model, optimizer, loader} = accelerator.prepare({prepared})
for i, (x, y) in enumerate(loader):
    with {context}:
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        {when:}optimizer.step()
        optimizer.zero_grad()
""")

FIRES = {
    "an Accelerator without accumulate()": _engine("accelerator.autocast()"),
    "an optimizer that is not prepared": _engine(
        "accelerator.accumulate(model)", prepared="model, loader"
    ),
    "a count that begins anew, divided on one way only": _counted(),
    "the chunks of a batch": script(_CHUNKS, divide=""),
    "several batches for one step": _micro_steps(),
    "by an early continue": script("""
ACC = 8
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    if (i + 1) % ACC:
        continue
    opt.step()
    opt.zero_grad()
"""),
    "never divided": _loop(),
    "with Adam, a remark": _loop(optimizer="AdamW"),
}

SILENT = {
    "near miss: an engine that accumulates": _engine("accelerator.accumulate(model)"),
    "near miss: an engine, and a count of its own": _engine(
        "accelerator.autocast()", when="if (i + 1) % 8 == 0: "
    ),
    "near miss: divided on either way": _counted("(loss / 8).backward()"),
    "near miss: a count that comes once": _counted(after="pass"),
    "near miss: the chunks are divided": script(_CHUNKS, divide=" / 4"),
    "near miss: the gradients are divided": _micro_steps(
        after="for p in net.parameters():\n        p.grad /= micro_steps"
    ),
    "near miss: several tasks for one step": _micro_steps(count="tasks"),
    "near miss: divided before the scaler": script("""
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for i, (x, y) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(x), y)
    if not torch.isfinite(loss):
        opt.zero_grad()
        continue
    scaler.scale(loss / 4).backward()
    if (i + 1) % 4 != 0:
        continue
    scaler.unscale_(opt)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad()
"""),
    "divided": _loop("loss = loss / accumulation_steps"),
    "near miss: divided in place": _loop("loss /= accumulation_steps"),
    "near miss: divided by a method": _loop("loss = loss.div(4)"),
    "near miss: divided by a method in place": _loop("loss.div_(4)"),
    "near miss: divided by a function": _loop("loss = torch.div(loss, accumulation_steps)"),
    "near miss: the gradient starts from a fraction": script(
        _LOOP.format(divide="pass", reduction="", optimizer="SGD").replace(
            "backward()", "backward(gradient=torch.tensor(0.25))"
        )
    ),
    "near miss: the gradients are divided out of sight": _loop(
        "average(model, accumulation_steps)"
    ),
    "near miss: summed on purpose": _loop(reduction='reduction="sum"'),
}
