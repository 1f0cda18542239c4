"""What loaders hand out: datasets, transforms and collate functions run for one example."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.examples import Example
from traindx.analysis.program.execution.values import Items, Result
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

START = """
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset, random_split

class Rows(Dataset):
    def __init__(self, x, change=None):
        self.x, self.change = x, change
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return self.change(self.x[i]), 1

def halved(v):
    return v / 2

def joined(rows):
    a, b = zip(*rows)
    return torch.stack(a) * 3, b
"""


def _examples(text: str) -> list[Example]:
    story = program_of(make_run(sources={"t.py": START + text})).stories[0]
    return list(story.execution.examples)


@pytest.mark.parametrize(
    "made",
    [
        "DataLoader(Rows(data, halved))",
        "DataLoader(dataset=Rows(data, halved))",
        "DataLoader(Subset(Rows(data, halved), index))",
        "DataLoader(random_split(Rows(data, halved), [8, 2])[0])",
        "DataLoader(ConcatDataset([Rows(data, halved)]))",
        "DataLoader(Rows(data, lambda v: v / 2))",
    ],
)
def test_an_example_is_made_by_the_dataset(made: str) -> None:
    (example,) = _examples(f"loader = {made}\n")
    assert isinstance(example.value, Items)
    first = example.value.members[0]
    assert isinstance(first, Result)
    assert first.maker == "operator.div"


def test_a_collate_function_makes_the_batch() -> None:
    (example,) = _examples("loader = DataLoader(Rows(data, halved), collate_fn=joined)\n")
    assert isinstance(example.value, Items)
    first = example.value.members[0]
    assert isinstance(first, Result)
    assert first.maker == "operator.mul"


def test_what_workers_do_is_no_event_of_the_program() -> None:
    text = "for x, y in DataLoader(Rows(data, halved)):\n    print(x)\n"
    story = program_of(make_run(sources={"t.py": START + text})).stories[0]
    assert not any(e.name == "operator.div" for e in story.events)
    assert any(e.name == "operator.div" for x in story.execution.examples for e in x.events)


def test_a_dataset_out_of_sight_gives_nothing() -> None:
    (example,) = _examples("loader = DataLoader(make_data())\n")
    assert example.value is None


def test_a_trainer_reads_its_dataset() -> None:
    text = "from transformers import Trainer\nTrainer(model=m, train_dataset=Rows(data, halved))\n"
    (example,) = _examples(text)
    assert isinstance(example.value, Items)
