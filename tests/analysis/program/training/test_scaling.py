"""Which gradient scaler scales a loss, and whether it is on."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.scaling import (
    is_scaled,
    is_scaled_by_engine,
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
