"""Numbers and lists that a loop of unknown length changes are not what two turns make of them."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

LOOP = """
import torch
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for x, y in loader:
    {each}
    if {test}:
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("before", "each", "test"),
    [
        ("n = 0", "n += 1", "n % 100 == 0"),
        ("n = 0", "n = n + 1", "n == 50"),
        ("kept = []", "kept.append(x)", "len(kept) == 8"),
        ("seen = {}", "seen.setdefault(x, y)", "len(seen) > 0"),
        ("n = 0", "n += 1", "n % 1 == 0"),
    ],
)
def test_a_step_on_a_count(before: str, each: str, test: str) -> None:
    text = LOOP.format(before=before, each=each, test=test)
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    assert story.does(Do.STEP)


def test_a_default_list_is_the_same_each_time() -> None:
    text = """
from collections import defaultdict
import torch
handlers = defaultdict(list)
handlers["after"].append(optimizer.step)
for x in loader:
    for handler in handlers["after"]:
        handler()
"""
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    assert story.does(Do.STEP)


def test_the_optimizers_of_a_lightning_module() -> None:
    text = """
import lightning as L
import torch
class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.a, self.b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    def configure_optimizers(self):
        return [torch.optim.SGD(self.a.parameters()), torch.optim.SGD(self.b.parameters())]
    def training_step(self, batch, index):
        first, second = self.optimizers()
        first.step()
        second.step()
"""
    stories = program_of(make_run(sources={"model.py": text})).stories
    steps = [d for s in stories for d in s.does(Do.STEP)]
    assert len({id(d.subject) for d in steps}) == 2


def test_the_optimizer_that_transformers_makes() -> None:
    text = """
from transformers import Trainer, TrainingArguments
arguments = TrainingArguments("out", learning_rate=1e-5{more})
Trainer(model=model, args=arguments, train_dataset=data).train()
"""
    for more, maker in (("", "torch.optim.AdamW"), (', optim="adafactor"', "")):
        run = make_run(sources={"train.py": text.format(more=more)})
        steps = program_of(run).stories[0].does(Do.STEP)
        assert steps and getattr(steps[0].subject, "maker", "") == maker


def test_a_count_beside_others() -> None:
    text = LOOP.format(before="n, last = 0, None", each="last, n = x, n + 1", test="n % 100 == 0")
    story = program_of(make_run(sources={"train.py": text})).stories[0]
    assert story.does(Do.STEP)
