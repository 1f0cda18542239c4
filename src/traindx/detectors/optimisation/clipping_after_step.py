from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import (
    finding,
    is_same_function,
    move_before,
    program_of,
)
from traindx.analysis.program.training.updates import has_gradients, late_for
from traindx.examples import script
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("clip-after-step",))
def check(run: Run) -> Findings:
    """Gradients are clipped only after the optimizer has used them.

    ## What it detects
    A loop in which the clipping comes after the step and before anything computes the next
    gradients, be it at the end of a turn or at the beginning of the next one, and none comes
    between `backward` and the step.

    ## Why it matters
    The clip never acts: the next `zero_grad` throws the clipped gradients away. The run is as
    exposed to large gradients as without it.

    ## What to do
    Move the clip between `backward()` (and `unscale_`) and `step()`.

    ## When it is wrong
    A clip that is there only to read the norm for logging does no harm after the step: one with an
    infinite bound is left alone. So are gradients that are written by hand, and a clip on the way
    to another optimizer's step.
    """
    for story in program_of(run).stories:
        clips = story.does(Do.CLIP)
        late = {id(c): s for c in clips if (s := late_for(story, c)) is not None}
        timely = [c for c in clips if id(c) not in late and has_gradients(story, c)]
        for clip in clips:
            step = late.get(id(clip))
            if step is None or any(_is_near(c, clip) for c in timely):
                continue
            yield finding(
                "Gradients are clipped after the step, where it has no effect",
                (step, "the step uses the gradients here"),
                (clip, "they are clipped only here"),
                at=clip,
                patch=_patch(clip, step),
                is_symptom=False,
            )
            break


def _patch(clip: Deed, step: Deed) -> str | None:
    is_near = clip.event.turns == step.event.turns and is_same_function(clip, step)
    return move_before(clip, step) if is_near else None


def _is_near(one: Deed, other: Deed) -> bool:
    return one.event.loops == other.event.loops


_LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in train_loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
    loss.backward()
{order}
"""
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


def _loop(*order: str) -> Run:
    body = "\n".join(f"    {line}" for line in order)
    return script(_LOOP, order=body)


FIRES = {
    "at the beginning of a turn": script(
        _LOOP.format(order="    optimizer.step()").replace(
            "    optimizer.zero_grad()", f"    {_CLIP}\n    optimizer.zero_grad()"
        )
    ),
    "before backward": script(
        _LOOP.format(order="    optimizer.step()").replace(
            "    loss.backward()", f"    {_CLIP}\n    loss.backward()"
        )
    ),
    "clamped by a helper": script("""
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def clip(m):
    for p in m.parameters():
        p.grad.clamp_(-1, 1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    opt.step()
    clip(model)
"""),
    "after the step": _loop("optimizer.step()", _CLIP),
    "by its old name": _loop("optimizer.step()", _CLIP.replace("norm_", "norm")),
}

_BY_HAND = "for p, g in zip(params, torch.autograd.grad(model(data).sum(), params)): p.grad = g"

SILENT = {
    "near miss: at the beginning of a turn, where a step may have been left out": script(
        _LOOP.format(order="    pass").replace(
            "    optimizer.zero_grad()",
            f"    if full:\n        {_CLIP}\n        optimizer.step()"
            "\n        optimizer.zero_grad()",
        )
    ),
    "near miss: gradients of another loss, by autograd.grad": _loop(
        "optimizer.step()", _BY_HAND, _CLIP, "second.step()"
    ),
    "near miss: gradients from out of sight": _loop(
        "optimizer.step()", "for p in params: p.grad = estimate(p)", _CLIP, "optimizer.step()"
    ),
    "near miss: two optimizers, one of them clipped": _loop(
        "optimizer.step()", _CLIP, "second_optimizer.step()"
    ),
    "near miss: only to read the norm": _loop(
        "optimizer.step()", "norm = " + _CLIP.replace("1.0", "float('inf')")
    ),
    "before the step": _loop(_CLIP, "optimizer.step()"),
    "no clip": _loop("optimizer.step()"),
    "near miss: before and after": _loop(_CLIP, "optimizer.step()", f"norm = {_CLIP}"),
}
