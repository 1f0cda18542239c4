"""Which gradient scaler scales a loss, and whether it is on."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.gradient_hooks import bounding_hooks
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.scaling import (
    bypassed_scalers,
    is_scaled,
    is_scaled_by_engine,
    missed_updates,
    scaled_clips,
    scaler_of,
    unscaled,
)
from traindx.examples import make_run


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ('torch.amp.GradScaler("cuda")', True),
        ("torch.cuda.amp.GradScaler(enabled=use_amp)", True),
        ("GradScaler() if amp else None", True),
        ("torch.amp.GradScaler(enabled=False)", False),
        ("TermScaler(1000)", False),
    ],
)
def test_torch_s_scaler(made: str, expected: bool) -> None:
    text = f"import torch\nscaler = {made}\nloss = model(x).sum()\nscaler.scale(loss).backward()\n"
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    backward = story.does(Do.BACKWARD)[0]
    assert is_scaled(story, backward) is expected
    assert scaler_of(backward.subject) is not None
    assert backward.subject is not None and unscaled(backward.subject) is not backward.subject


@pytest.mark.parametrize(("precision", "expected"), [("'fp16'", True), ("'bf16'", False)])
def test_a_framework_that_scales(precision: str, expected: bool) -> None:
    text = (
        "from accelerate import Accelerator\nimport torch\n"
        f"engine = Accelerator(mixed_precision={precision})\nengine.backward(model(x).sum())\n"
    )
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    assert is_scaled_by_engine(story, story.does(Do.BACKWARD)[0]) is expected


LOOP = """
import torch
net, head = torch.nn.Linear(4, 2), torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
other = torch.optim.SGD(head.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(head(net(x)), y)
    opt.zero_grad()
    scaler.scale(loss).backward()
    {lines}
"""


NORM = "norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)"


def _story(lines: str) -> Story:
    return program_of(make_run(sources={"train.py": LOOP.format(lines=lines)})).stories[0]


@pytest.mark.parametrize(
    ("lines", "is_missed"),
    [
        ("scaler.step(opt)", True),
        ("scaler.step(opt)\nscaler.update()", True),
        ("scaler.step(opt)\n    if i % 9 == 0: scaler.update()", True),
        ("scaler.step(opt); scaler.update()", False),
        ("if i % 9 == 0:\n        scaler.step(opt); scaler.update()", False),
        ("for o in (opt, other): scaler.step(o)\n    scaler.update()", False),
        ("scaler.step(opt)\n    if healthy: scaler.update()", False),
        ("scaler.step(opt); scaler.update(new_scale=65536.0)", True),
        ("scaler.step(opt); scaler.update(scaler.get_scale() / 2)", False),
        (f"{NORM}\n    if norm.isfinite(): scaler.step(opt); scaler.update()", True),
        (f"{NORM}\n    if norm < 9: scaler.step(opt)\n    scaler.update()", False),
    ],
)
def test_an_update_for_every_step(lines: str, is_missed: bool) -> None:
    assert bool(list(missed_updates(_story(lines)))) is is_missed


@pytest.mark.parametrize(
    ("lines", "is_plain"),
    [
        ("net(x).mean().backward(); scaler.step(opt)", True),
        ("other_net(x).mean().backward(); scaler.step(opt)", False),
        ("scaler.scale(net(x).mean()).backward(); scaler.step(opt)", False),
    ],
)
def test_gradients_of_a_loss_that_is_not_scaled(lines: str, is_plain: bool) -> None:
    found = list(bypassed_scalers(_story(lines)))
    assert any(f.plain is not None for f in found) is is_plain


CLIP = "torch.nn.utils.clip_grad_norm_({}.parameters(), 1.0)"


@pytest.mark.parametrize(
    ("lines", "is_scaled_still"),
    [
        (CLIP.format("net") + "; scaler.step(opt)", True),
        ("for p in net.parameters(): p.grad.clamp_(-1, 1)\n    scaler.step(opt)", True),
        (f"scaler.unscale_(opt); {CLIP.format('net')}; scaler.step(opt)", False),
        ("for p in net.parameters(): p.grad = p.grad.clamp(-1, 1)\n    scaler.step(opt)", True),
        ("for p in net.parameters(): p.grad = p.grad * 2\n    scaler.step(opt)", False),
        (f"scaler.unscale_(opt); {CLIP.format('head')}; scaler.step(other)", True),
    ],
)
def test_gradients_that_are_clipped_with_their_scale(lines: str, is_scaled_still: bool) -> None:
    assert bool(list(scaled_clips(_story(lines)))) is is_scaled_still


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("opt.step()", True),
        ("if i % 2: scaler.unscale_(opt); opt.step()", True),
        ("scaler.unscale_(opt)\n    if finite(net): opt.step()", False),
        ("scaler.step(opt)", False),
    ],
)
def test_a_step_past_the_scaler(lines: str, expected: bool) -> None:
    assert bool(list(bypassed_scalers(_story(lines)))) is expected


@pytest.mark.parametrize(
    ("hook", "is_bound"),
    [
        ("p.register_hook(lambda g: g.clamp(-1, 1))", True),
        ("p.register_hook(lambda g: g / (g.norm() + 1e-6))", True),
        ("p.register_hook(partial(torch.clamp, max=1))", False),  # out of sight
        ("p.register_hook(lambda g: g * 0.5)", False),
        ("h.register_hook(lambda g: g.clamp(-1, 1))", False),
    ],
)
def test_hooks_that_bound_gradients(hook: str, is_bound: bool) -> None:
    text = f"import torch\nnet = torch.nn.Linear(4, 2)\nfor p in net.parameters():\n    {hook}\n"
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    assert bool(bounding_hooks(story)) is is_bound
