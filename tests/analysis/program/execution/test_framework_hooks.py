"""What Lightning runs around a training step: callbacks and hooks, in its order."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

PROGRAM = """
import lightning as L
import torch
from torch import nn

class Watch(L.Callback):
    {callback}

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    {hook}

L.Trainer(callbacks=[Watch()]).fit(Net(), torch.utils.data.DataLoader(data))
"""


def followed(hook: str = "", callback: str = "pass") -> Story:
    text = PROGRAM.format(hook=hook, callback=callback)
    stories = program_of(make_run(sources={"train.py": text})).stories
    return max(stories, key=lambda story: len(story.events))


def order(story: Story) -> list[Do]:
    wanted = (Do.ZERO_GRAD, Do.BACKWARD, Do.CLIP, Do.STEP)
    return [d.do for d in story.does(*wanted)]


def test_a_plain_module_clears_computes_and_steps() -> None:
    assert order(followed())[:3] == [Do.ZERO_GRAD, Do.BACKWARD, Do.STEP]


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        ("def on_after_backward(self):\n        {clip}", [Do.BACKWARD, Do.CLIP, Do.STEP]),
        (
            "def on_before_optimizer_step(self, optimizer):\n        {clip}",
            [Do.BACKWARD, Do.CLIP, Do.STEP],
        ),
        ("def on_before_zero_grad(self, optimizer):\n        {clip}", [Do.ZERO_GRAD, Do.BACKWARD]),
        ("def on_train_batch_end(self, *args):\n        {clip}", [Do.STEP, Do.CLIP, Do.ZERO_GRAD]),
    ],
)
def test_hooks_run_in_their_places(hook: str, expected: list[Do]) -> None:
    clip = "torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)"
    found = order(followed(hook.format(clip=clip)))
    assert any(found[i : i + len(expected)] == expected for i in range(len(found)))


def test_callbacks_get_the_module() -> None:
    callback = (
        "def on_before_optimizer_step(self, trainer, module, optimizer):\n"
        "        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)"
    )
    assert order(followed(callback=callback))[:4] == [
        Do.ZERO_GRAD, Do.BACKWARD, Do.CLIP, Do.STEP,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("optimizer.step(closure=closure)", [Do.ZERO_GRAD, Do.BACKWARD, Do.STEP]),
        ("closure()", [Do.ZERO_GRAD, Do.BACKWARD, Do.ZERO_GRAD]),
    ],
)
def test_a_step_of_its_own_runs_the_closure(body: str, expected: list[Do]) -> None:
    hook = f"def optimizer_step(self, epoch, batch_idx, optimizer, closure):\n        {body}"
    assert order(followed(hook))[:3] == expected


def test_clearing_of_its_own_replaces_lightnings() -> None:
    hook = "def optimizer_zero_grad(self, epoch, batch_idx, optimizer):\n        pass"
    assert Do.ZERO_GRAD not in order(followed(hook))


@pytest.mark.parametrize(
    ("returned", "is_per_step"),
    [
        ('{"optimizer": o, "lr_scheduler": {"scheduler": s, "interval": "step"}}', True),
        ('{"optimizer": o, "lr_scheduler": s, "interval": "step"}', False),
        ('[o], [{"scheduler": s, "interval": "step"}]', True),
    ],
)
def test_an_interval_counts_beside_its_schedule_only(returned: str, is_per_step: bool) -> None:
    hook = f"""def configure_optimizers(self):
        o = torch.optim.SGD(self.parameters(), lr=0.1)
        s = torch.optim.lr_scheduler.StepLR(o, 10)
        return {returned}"""
    steps = followed(hook).does(Do.SCHEDULER_STEP)
    assert steps and all(len(d.event.loops) == (2 if is_per_step else 1) for d in steps)
