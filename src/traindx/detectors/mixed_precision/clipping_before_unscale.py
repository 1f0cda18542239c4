from traindx.analysis.program.training.claims import (
    each_place,
    finding,
    insert_before,
    is_same_function,
    receiver_of,
    source_text,
)
from traindx.analysis.program.training.scaling import ScaledClip, scaled_clips
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("clip-without-unscale",))
def check(run: Run) -> Findings:
    """Gradients are clipped before the scaler has unscaled them.

    ## What it detects
    A step through a gradient scaler that also scaled the loss, where gradients are clipped, by
    torch's functions, by hand or by a hook of the parameters, without `unscale_` of that optimizer
    before. The same where a framework (Accelerate, Fabric) that may run in float16 scales the loss,
    and gradients are clipped past it.

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
    is_felt = _is_scaled_up(run)
    for found in each_place(run, scaled_clips, lambda found: found.clip.event.node):
        clip, step, call = found.clip, found.update.step, _unscale(found)
        yield finding(
            f"Gradients are clipped before `{call}`, at the scale of the loss scaler",
            (
                clip,
                "clipped by this hook, still scaled"
                if found.is_hook
                else "clipped here, still scaled",
            ),
            (step, "unscaled only here"),
            strength=Strength.STRONG if is_felt else Strength.MODERATE,
            hint=None if is_felt else Strength.WEAK,
            is_symptom=is_felt,
            patch=None
            if found.is_hook or not is_same_function(clip, step)
            else insert_before(clip, call),
        )


def _unscale(found: ScaledClip) -> str:
    """The call that is missing before the clip."""
    step, is_engine = found.update.step, found.update.step.through is None
    scaler = receiver_of(found.update.backward if is_engine else step)
    name = "scaler" if scaler is None else source_text(scaler)
    return f"{name}.unscale_gradients()" if is_engine else f"{name}.unscale_({step.text})"


def _is_scaled_up(run: Run) -> bool:
    """A scale that fell to one and below makes no norm large any more: its fall is the fault."""
    scale = run.get("loss_scale")
    return scale is None or not len(scale.finite()) or float(scale.finite().values.max()) > 1.0


_LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = {made}
for data, target in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(data), target)
    {by}.scale(loss).backward()
    {clip}
    scaler.step(optimizer)
    scaler.update()
"""
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
_loop = template(_LOOP, clip=_CLIP, made='torch.amp.GradScaler("cuda")', by="scaler")
_HOOKED = """
model = torch.nn.Linear(4, 2)
for p in model.parameters():
    p.register_hook(lambda g: {given})
""" + _LOOP.format(clip="pass", made='torch.amp.GradScaler("cuda")', by="scaler")
_hooked = template(_HOOKED, "given")
_accelerate = template("""
from accelerate import Accelerator
acc = Accelerator(gradient_accumulation_steps=4, mixed_precision="fp16")
model, opt, loader = acc.prepare(model, torch.optim.SGD(model.parameters(), lr=.1), loader)
for x, y in loader:
    with acc.accumulate(model):
        loss = torch.nn.functional.mse_loss(model(x), y)
        acc.backward(loss)
        if acc.sync_gradients:
            {by}.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
""")

FIRES = {
    "past Accelerate": _accelerate("torch.nn.utils"),
    "in methods of a trainer": script("""
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
"""),
    "no unscale_": _loop(),
    "by a hook of the parameters": _hooked("g.clamp(-1, 1)"),
}

SILENT = {
    "near miss: clipped by Accelerate": _accelerate("acc"),
    "near miss: a hook that takes out NaN": _hooked("torch.nan_to_num(g)"),
    "near miss: a hook whose limit is scaled": _hooked("g.clamp(-0.5 * scaler.get_scale(), 9)"),
    "unscaled first": _loop(f"scaler.unscale_(optimizer)\n    {_CLIP}"),
    "no clipping": _loop("pass"),
    "near miss: a scaler of its own kind": _loop(made="TermScaler(1000)"),
    "near miss: switched off": _loop(made="torch.amp.GradScaler(enabled=False)"),
    "near miss: a weight scales the loss": _loop(by="ramp"),
    "near miss: the limit is scaled": _loop(
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale())"
    ),
}
