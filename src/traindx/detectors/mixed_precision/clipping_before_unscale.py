"""Gradients are clipped while they still carry the loss scale."""

from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.claims import (
    cite,
    finding,
    insert_before,
    is_same_function,
    receiver_of,
    source_text,
)
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.scaling import scaled_clip
from traindx.analysis.program.training.updates import Update, updates
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("clip-without-unscale",))
def check(run: Run) -> Findings:
    """Gradients are clipped before the scaler has unscaled them.

    ## What it detects
    A step through a gradient scaler that also scaled the loss, where gradients are clipped, by
    torch's functions or by hand, between the backward pass and the step without `unscale_` of that
    optimizer before. The same where a framework (Accelerate, Fabric) that may run in float16 scales
    the loss, and gradients are clipped past it.

    ## Why it matters
    The gradients are still multiplied by the loss scale (65536 at first), so nearly every step is
    clipped to a norm that is thousands of times too small: training crawls.

    ## What to do
    Call `scaler.unscale_(optimizer)` between `backward` and the clipping; with a framework, its own
    clipping function.

    ## When it is wrong
    A limit that is multiplied by the scale is right without unscaling; such a loop asks the scaler
    for its scale and is left alone. So is a `scale` or a scaler that is not torch's, or is off.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for update in updates(story):
            clip = scaled_clip(update)
            if clip is not None and clip.event.node not in seen:
                seen.add(clip.event.node)
                yield _finding(run, update, clip)


def _finding(run: Run, update: Update, clip: Deed) -> Finding:
    step, is_engine = update.step, update.step.through is None
    scaler = receiver_of(update.backward if is_engine else step)
    name = "scaler" if scaler is None else source_text(scaler)
    call = f"{name}.unscale_gradients()" if is_engine else f"{name}.unscale_({step.text})"
    is_felt = _is_scaled_up(run)
    return finding(
        f"Gradients are clipped before `{call}`, at the scale of the loss scaler",
        "clip-without-unscale",
        clip,
        cite(clip, "clipped here, still scaled"),
        cite(step, "unscaled only here"),
        strength=Strength.STRONG if is_felt else Strength.MODERATE,
        hint=None if is_felt else Strength.WEAK,
        is_symptom=is_felt,
        patch=insert_before(clip, call) if is_same_function(clip, step) else None,
    )


def _is_scaled_up(run: Run) -> bool:
    """A scale that fell to one and below makes no norm large any more: its fall is the fault."""
    scale = run.get("loss_scale")
    return scale is None or not len(scale.finite()) or float(scale.finite().values.max()) > 1.0


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for data, target in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(data), target)
    scaler.scale(loss).backward()
    {clip}
    scaler.step(optimizer)
    scaler.update()
"""
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


def _loop(clip: str, made: str = 'torch.amp.GradScaler("cuda")') -> Run:
    text = _LOOP.format(clip=clip).replace('torch.amp.GradScaler("cuda")', made)
    return make_run(sources={"train.py": text})


_TRAINER = """
import torch
from torch import nn
class T:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()
    def backward(self, loss):
        self.scaler.scale(loss).backward()
    def update(self):
        nn.utils.clip_grad_value_(self.model.parameters(), 0.5)
        self.scaler.step(self.opt)
        self.scaler.update()
    def fit(self, dl):
        for x, y in dl:
            self.opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = nn.functional.mse_loss(self.model(x), y)
            self.backward(loss)
            self.update()
"""

_ACCELERATE = """
import torch
from accelerate import Accelerator
acc = Accelerator(gradient_accumulation_steps=4, mixed_precision="fp16")
model, opt, loader = acc.prepare(model, torch.optim.SGD(model.parameters(), lr=.1), loader)
for x, y in loader:
    with acc.accumulate(model):
        loss = torch.nn.functional.mse_loss(model(x), y)
        acc.backward(loss)
        if acc.sync_gradients:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
"""

FIRES = {
    "past Accelerate": make_run(sources={"train.py": _ACCELERATE}),
    "in methods of a trainer": make_run(sources={"train.py": _TRAINER}),
    "no unscale_": _loop(_CLIP),
}

_TRAINER_SOUND = """
import torch
from accelerate import Accelerator
acc = Accelerator(gradient_accumulation_steps=4, mixed_precision="fp16")
model, opt, loader = acc.prepare(model, torch.optim.SGD(model.parameters(), lr=.1), loader)
for x, y in loader:
    with acc.accumulate(model):
        loss = torch.nn.functional.mse_loss(model(x), y)
        acc.backward(loss)
        if acc.sync_gradients:
            acc.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
"""

SILENT = {
    "near miss: clipped by Accelerate": make_run(sources={"train.py": _TRAINER_SOUND}),
    "unscaled first": _loop(f"scaler.unscale_(optimizer)\n    {_CLIP}"),
    "no clipping": _loop("pass"),
    "near miss: a scaler of its own kind": _loop(_CLIP, "TermScaler(1000)"),
    "near miss: switched off": _loop(_CLIP, "torch.amp.GradScaler(enabled=False)"),
    "near miss: a weight scales the loss": make_run(
        sources={
            "train.py": _LOOP.format(clip=_CLIP).replace("scaler.scale(loss)", "ramp.scale(loss)")
        }
    ),
    "near miss: the limit is scaled": _loop(
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale())"
    ),
}
