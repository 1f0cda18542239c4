"""The samplers that loaders keep, slices of containers, and tensors of one number."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Result, Value, constant
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

START = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler
"""


def _found(text: str) -> Value:
    story = program_of(make_run(sources={"t.py": f"{START}found = {text}\n"})).stories[0]
    return [a.value for a in story.execution.assignments if a.name == "found"][-1]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("DataLoader(d, 8).sampler", "SequentialSampler"),
        ("DataLoader(d, 8, shuffle=True).sampler", "RandomSampler"),
        ("DataLoader(d, 8, sampler=DistributedSampler(d)).sampler", "DistributedSampler"),
        ("DataLoader(d, batch_sampler=BatchSampler(s, 8, True)).sampler", "SequentialSampler"),
        ("DataLoader(d, batch_sampler=BatchSampler(s, 8, True)).batch_sampler", "BatchSampler"),
        ("BatchSampler(DistributedSampler(d), 8, True).sampler", "DistributedSampler"),
    ],
)
def test_the_sampler_of_a_loader(text: str, kind: str) -> None:
    found = _found(text)
    assert isinstance(found, Result)
    assert found.maker == f"torch.utils.data.{kind}"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("isinstance(DataLoader(d, 8).sampler, DistributedSampler)", False),
        ("isinstance(DistributedSampler(d), DistributedSampler)", True),
        ("isinstance(DistributedSampler(d), torch.utils.data.Sampler)", True),
        ("isinstance(DataLoader(d, 8, shuffle=s).sampler, RandomSampler)", None),
        ("isinstance(DistributedSampler(d), mine.Sampler)", None),
    ],
)
def test_of_which_class_a_sampler_is(text: str, known: bool | None) -> None:
    assert constant(_found(text)) is known


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("len(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.ReLU()])[:-1])", 2),
        ("len(nn.Sequential(nn.ReLU(), nn.ReLU(), nn.ReLU())[1:])", 2),
        ("len(nn.ModuleList([nn.ReLU(), nn.ReLU()])[:n])", None),
        ("F.mse_loss(a, b).numel()", 1),
        ("(F.mse_loss(a, b) + 0.1 * x.sum()).dim()", 0),
        ("nn.MSELoss()(a, b).numel()", 1),
        ("F.mse_loss(a, b, reduction='none').numel()", None),
        ("x.mean(1).numel()", None),
        ("(x.mean() * x).numel()", None),
    ],
)
def test_how_many_there_are(text: str, count: int | None) -> None:
    assert constant(_found(text)) == count


@pytest.mark.parametrize(
    ("after", "dtype"), [("pass", "float64"), ("net.double()", None), ("net.half()", None)]
)
def test_a_buffer_is_kept_under_its_name(after: str, dtype: str | None) -> None:
    text = f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(4, dtype=torch.float64))
net = Net()
{after}
found = net.table
"""
    story = program_of(make_run(sources={"t.py": START + text})).stories[0]
    found = [a.value for a in story.execution.assignments if a.name == "found"][-1]
    element = story.dtypes.of(found)
    assert (element.dtype if element is not None else None) == dtype
