"""What is done to an input between the data and the model."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.preprocessing import (
    Preprocessing,
    preprocessing_of,
    statistics_of_all,
)
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

PROGRAM = """
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, x):
        self.x, self.mean = x, x.mean(0)
    def __getitem__(self, i):
        return {item}, 0

model = torch.nn.Linear(8, 2)
for x, y in DataLoader(Rows(data)):
    model({given})
"""


def _of(given: str, item: str = "self.x[i]", *, into_dataset: bool = True) -> Preprocessing:
    run = make_run(sources={"t.py": PROGRAM.format(given=given, item=item)})
    story = program_of(run).stories[0]
    value = story.does(Do.FORWARD)[0].event.args[0]
    return preprocessing_of(story, value, into_dataset=into_dataset)


@pytest.mark.parametrize(
    ("given", "scaling"),
    [
        ("x", ()),
        ("x.float().to(device)", ()),
        ("x / 255", ("* 0.003922",)),
        ("x.div(255.0)", ("* 0.003922",)),
        ("(x - 0.5) * 2", ("+ -0.5", "* 2")),
        ("(x + 1).log()", ("+ 1", "log")),
        ("(x - x.mean()) / x.std()", ("sub a statistic", "div a statistic")),
    ],
)
def test_scaling_is_written_in_one_form(given: str, scaling: tuple[str, ...]) -> None:
    found = _of(given)
    assert found.is_known
    assert found.scaling == scaling


def test_it_is_followed_into_the_dataset() -> None:
    assert _of("x * 2", "(self.x[i] - self.mean).sqrt()").scaling == (
        "sub a statistic",
        "sqrt",
        "* 2",
    )
    assert _of("x * 2", "self.x[i].sqrt()", into_dataset=False).scaling == ("* 2",)


@pytest.mark.parametrize("given", ["x + torch.randn_like(x)", "x + 0.1 * torch.rand(3)"])
def test_noise(given: str) -> None:
    assert len(_of(given).noise) == 1


@pytest.mark.parametrize("given", ["prepare(x)", "0.3 * x + 0.7 * x[order]"])
def test_what_is_out_of_sight_is_not_known(given: str) -> None:
    assert not _of(given).is_known


@pytest.mark.parametrize(
    ("made", "is_scaled"),
    [
        ("TensorDataset((x - x.mean(0)) / x.std(0), y)", True),
        ("Kept((x - x.mean(0)) / x.std(0))", True),
        ("TensorDataset(x / 255, y)", False),
        ("TensorDataset(x - x.mean(1, keepdim=True), y)", False),
        ("TensorDataset(torch.randn(900) - torch.randn(900).mean(), y)", False),
        ("TensorDataset(series - series.mean(), y)", True),
        ("TensorDataset((x - x.mean()) / x.std(), y)", False),  # one number of all pixels
        ("Kept(x)", False),
    ],
)
def test_statistics_of_all_inside_of_a_dataset(made: str, is_scaled: bool) -> None:
    text = f"""
import torch
from torch.utils.data import Dataset, TensorDataset

class Kept(Dataset):
    def __init__(self, x):
        self.x = x

x, y = torch.load("data.pt")
series = torch.randn(900)
seen({made})
"""
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert (statistics_of_all(story.events[-1].args[0]) is not None) is is_scaled
