"""What a training step waits for: by force, once in a step, or for each parameter and sample."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.device_waits import step_waits
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

LOOP = """
import torch
model = torch.nn.Linear(4, 2).{device}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    out = model(x)
    loss = torch.nn.functional.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {more}
"""


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ("torch.cuda.synchronize()", (1, 0, False)),
        ("a = loss.item(); b = out.cpu().numpy()", (0, 2, False)),
        ("norms = [p.grad.norm().item() for p in model.parameters()]", (0, 0, True)),
        ("for k in range(len(y)):\n        print(out[k].max().item())", (0, 0, True)),
        ("for s in states:\n        env.step(model(s).argmax().item())", (0, 0, False)),
        ("if i % 50 == 0:\n        print(loss.item())", (0, 0, False)),
        (
            "for p in model.parameters():\n        if p.abs().max() > 9 or p.grad.isnan().any():"
            "\n            raise ValueError",
            (0, 0, True),
        ),
        ('if device.type == "cuda":\n        torch.cuda.synchronize(device)', (1, 0, False)),
        ("if torch.cuda.is_available():\n        torch.cuda.synchronize()", (1, 0, False)),
        ("if profile:\n        torch.cuda.synchronize()", (0, 0, False)),
        ('if device.type == "cpu":\n        torch.cuda.synchronize()', (0, 0, False)),
        ("for p in model.parameters():\n        big = p.abs().max() > 9", (0, 0, False)),
        (
            "for p in model.parameters():\n        if p.grad is None or p.dim() > 1: pass",
            (0, 0, False),
        ),
        (
            "ok = all(p.grad.isfinite().all().item() for p in model.parameters())\n"
            "    if ok:\n        optimizer.step()",
            (0, 0, False),
        ),
    ],
)
def test_waits_of_a_step(more: str, counts: tuple[int, int, bool]) -> None:
    text = LOOP.format(device="cuda()", more=more)
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    (waits,) = step_waits(story)
    assert (len(waits.forced), len(waits.reads), bool(waits.repeated)) == counts


def test_nothing_waits_without_a_device() -> None:
    text = LOOP.format(device="double()", more="a = loss.item()")
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert not list(step_waits(story))


@pytest.mark.parametrize(
    ("read", "is_read"),
    [("float(out.mean())", True), ("int(len(out))", False), ("float(0.1)", False)],
)
def test_a_conversion_of_a_tensor_reads_it(read: str, is_read: bool) -> None:
    text = LOOP.format(device="cuda()", more=f"a = {read}")
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    (waits,) = step_waits(story)
    assert bool(waits.reads) is is_read
