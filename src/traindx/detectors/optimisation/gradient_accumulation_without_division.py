"""Gradients are accumulated over batches and the loss is not divided by their number."""

from traindx.analysis.program.execution.values import Known, Result, Value, constant
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import (
    argument_of,
    cite,
    finding,
    is_same_function,
    receiver_of,
    replace,
    source_text,
)
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.losses import is_changed, is_mean
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.scaling import scaler_of, unscaled
from traindx.analysis.program.training.updates import (
    Repetition,
    UpdateWindow,
    count_of_turns,
    group_step,
    happens_with,
    ignored_accumulation,
    is_handed_on,
    period_of,
    repetitions,
    writes_gradients,
)
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("gradient-accumulation-unscaled",))
def check(run: Run) -> Findings:
    """Gradients of several batches are summed and the loss is never divided by their number.

    ## What it detects
    A loop that calls `backward` for every batch and steps and clears only every n batches, or a
    loop over the micro-batches of one update with the step after it, where the loss is averaged
    over the batch and reaches `backward` unchanged. And an `Accelerator` that is told to accumulate
    in a loop that is not run under `accelerator.accumulate()` and steps at every batch.

    ## Why it matters
    The gradients of n batches add up, so the step is n times that of one large batch: with SGD the
    learning rate is n times what was meant. Adam hides it, until clipping or weight decay meet it.

    ## What to do
    Divide: `(loss / n).backward()`.

    ## When it is wrong
    A learning rate that was chosen for the sum is right as it is: one that is computed is left
    alone. So are a loss that is summed on purpose, and frameworks that divide themselves.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for repeated in repetitions(story):
            step = _periodic_step(repeated) or group_step(repeated)
            if step is None or not _is_whole_loss(repeated) or _is_reckoned_with(repeated, step):
                continue
            if repeated.second.event.node not in seen:
                seen.add(repeated.second.event.node)
                yield _finding(story, repeated.second, step)
        for engine, step in ignored_accumulation(story):
            if step.event.node not in seen:
                seen.add(step.event.node)
                yield _ignored(engine, step)


def _ignored(engine: Value, step: Deed) -> Finding:
    return finding(
        "The optimizer steps at every batch: `accelerator.accumulate()` is not used",
        "gradient-accumulation-unscaled",
        step,
        cite(engine, "the loss is divided by `gradient_accumulation_steps`"),
        cite(step, "and each batch is applied by itself"),
        is_symptom=True,
    )


def _periodic_step(repeated: Repetition) -> Deed | None:
    """A step that runs every n batches, and clears only then."""
    between, story = repeated.between, repeated.story
    steps, zeros = between.does(Do.STEP), between.does(Do.ZERO_GRAD)
    if not steps or not zeros or period_of(story, repeated.second.event) is not None:
        return None
    periods = [period_of(story, s.event) for s in steps]
    if any(period is None or constant(period) == 1 for period in periods):
        return None
    return steps[0] if all(happens_with(steps[0].event, z.event) for z in zeros) else None


def _is_whole_loss(repeated: Repetition) -> bool:
    """Tell whether backward starts from the mean over one batch, at a gradient of 1."""
    backward, story = repeated.second, repeated.story
    loss = None if backward.subject is None else unscaled(backward.subject)
    if loss is None or backward.through is not None or not is_mean(loss):
        return False
    event = backward.event
    is_weighted = any(a is not backward.subject for a in event.args) or "gradient" in event.kwargs
    accumulates = any(isinstance(c, Result) and c.maker == ".accumulate" for c in event.contexts)
    return not is_weighted and not accumulates and not is_changed(loss, story.events)


def _is_reckoned_with(repeated: Repetition, step: Deed) -> bool:
    """Tell whether gradients or the learning rate may make up for the sum."""
    story = repeated.story
    until = UpdateWindow(story, repeated.second.event, step.event)
    events = (*repeated.between.events, *until.events)
    if repeated.between.does(Do.GRAD, Do.MANUAL_UPDATE) or writes_gradients(story, events):
        return True
    if story.made(Kind.ENGINE) or is_handed_on(story, events, period_of(story, step.event)):
        return True
    return _is_rate_computed(step.subject)


def _is_rate_computed(optimizer: Value | None) -> bool:
    if not isinstance(optimizer, Result):
        return False
    rate = optimizer.kwargs.get("lr") or next(iter(optimizer.args[1:2]), None)
    is_product = isinstance(rate, Result) and rate.maker.startswith("operator.")
    return is_product or (isinstance(rate, Known) and bool(rate.operands))


def _finding(story: Story, backward: Deed, step: Deed) -> Finding:
    turns = count_of_turns(story, step.event)
    count = None if turns is None else argument_of(turns, 1)
    text = "n" if count is None else source_text(count)
    maker = step.subject.maker if isinstance(step.subject, Result) else ""
    clips = (c for c in story.does(Do.CLIP) if c.event.loops == step.event.loops)
    is_clipped = any(happens_with(c.event, step.event) for c in clips)  # the sum is
    is_plain = maker.endswith(".SGD") or is_clipped
    is_near = count is not None and is_same_function(count, backward)
    return finding(
        f"Gradients of {text} batches add up and the loss is not divided by their number",
        "gradient-accumulation-unscaled",
        backward,
        cite(backward, "backward on the whole loss, every batch"),
        cite(step, f"the step, every {text} batches"),
        strength=Strength.STRONG if is_plain else Strength.MODERATE,
        hint=None if is_plain else Strength.MODERATE,
        is_symptom=is_plain,
        patch=_patch(backward, text) if is_near else None,
    )


def _patch(backward: Deed, count: str) -> str | None:
    """Divide the loss, before the scaler where there is one."""
    if scaler_of(backward.subject) is not None and backward.subject is not None:
        loss = argument_of(backward.subject)
        return None if loss is None else replace(loss, f"{source_text(loss)} / {count}")
    loss = receiver_of(backward)
    return None if loss is None else replace(loss, f"({source_text(loss)} / {count})")


_LOOP = """
import torch
from torch import nn

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


def _loop(divide: str = "pass", reduction: str = "", optimizer: str = "SGD") -> Run:
    text = _LOOP.format(divide=divide, reduction=reduction, optimizer=optimizer)
    return make_run(sources={"train.py": text})


_SKIPPED = """
import torch
from torch import nn
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
"""

_CHUNKS = """
import torch
from torch import nn
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for x, y in loader:
    opt.zero_grad()
    for part, target in zip(x.chunk(4), y.chunk(4)):
        error = nn.functional.mse_loss(model(part), target){divide}
        error.backward()
    opt.step()
"""

_MICRO_STEPS = """
import itertools
import torch
import torch.nn.functional as F
micro_steps = 8
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
stream = itertools.cycle(loader)
for it in range(1000):
    opt.zero_grad(set_to_none=True)
    for micro in range({count}):
        x, y = next(stream)
        logp = F.log_softmax(net(x), -1)
        loss = -logp.gather(1, y[:, None]).mean()
        loss.backward()
    {after}
    opt.step()
"""


def _micro_steps(count: str = "micro_steps", after: str = "pass") -> Run:
    return make_run(sources={"train.py": _MICRO_STEPS.format(count=count, after=after)})


_COUNTED = """
import torch
from torch import nn
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
pending = 0
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    if scaler.is_enabled():
        scaler.scale(loss / 8).backward()
    else:
        {backward}
    pending += 1
    if pending == 8:
        opt.step()
        opt.zero_grad()
        {after}
"""


def _counted(backward: str = "loss.backward()", after: str = "pending = 0") -> Run:
    return make_run(sources={"train.py": _COUNTED.format(backward=backward, after=after)})


_ENGINE = """
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(gradient_accumulation_steps=8)
model = nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for i, (x, y) in enumerate(loader):
    with {context}:
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        {when}optimizer.step()
        optimizer.zero_grad()
"""


def _engine(context: str, when: str = "") -> Run:
    return make_run(sources={"train.py": _ENGINE.format(context=context, when=when)})


FIRES = {
    "an engine that is told and not asked": _engine("accelerator.autocast()"),
    "a count that begins anew, divided on one way only": _counted(),
    "the chunks of a batch": make_run(sources={"train.py": _CHUNKS.format(divide="")}),
    "several batches for one step": _micro_steps(),
    "by an early continue": make_run(sources={"train.py": _SKIPPED}),
    "never divided": _loop(),
    "with Adam, a remark": _loop(optimizer="AdamW"),
}

_SKIPPED_SOUND = """
import torch
from torch import nn
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
"""

SILENT = {
    "near miss: an engine that accumulates": _engine("accelerator.accumulate(model)"),
    "near miss: an engine, and a count of its own": _engine(
        "accelerator.autocast()", "if (i + 1) % 8 == 0: "
    ),
    "near miss: divided on either way": _counted("(loss / 8).backward()"),
    "near miss: a count that comes once": _counted(after="pass"),
    "near miss: the chunks are divided": make_run(
        sources={"train.py": _CHUNKS.format(divide=" / 4")}
    ),
    "near miss: the gradients are divided": _micro_steps(
        after="for p in net.parameters():\n        p.grad /= micro_steps"
    ),
    "near miss: several tasks for one step": _micro_steps(count="tasks"),
    "near miss: divided before the scaler": make_run(sources={"train.py": _SKIPPED_SOUND}),
    "divided": _loop("loss = loss / accumulation_steps"),
    "near miss: divided in place": _loop("loss /= accumulation_steps"),
    "near miss: divided by a method": _loop("loss = loss.div(4)"),
    "near miss: divided by a method in place": _loop("loss.div_(4)"),
    "near miss: divided by a function": _loop("loss = torch.div(loss, accumulation_steps)"),
    "near miss: the gradient starts from a fraction": make_run(
        sources={
            "train.py": _LOOP.format(divide="pass", reduction="", optimizer="SGD").replace(
                "backward()", "backward(gradient=torch.tensor(0.25))"
            )
        }
    ),
    "near miss: the gradients are divided out of sight": _loop(
        "average(model, accumulation_steps)"
    ),
    "near miss: summed on purpose": _loop(reduction='reduction="sum"'),
}
