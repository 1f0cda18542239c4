"""Changes of the data that a training is fed."""

from __future__ import annotations

from pathlib import Path

from changing import change

PREAMBLE = """
import json
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset, IterableDataset
from traindx_interventions import reports

torch.manual_seed(0)
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

def train(loader):
    seen = []
    for x, in loader:
        seen.append([round(v) for v in x[:, 0].tolist()])
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    return seen

def look(loader):
    return [[round(v) for v in x[:, 0].tolist()] for x, in loader]

numbers = lambda start: TensorDataset(torch.arange(start, start + 12.0)[:, None])
"""

ORDER = (
    PREAMBLE
    + """
import torch.utils.data as data
first, other = numbers(0), numbers(100)
training, valid = DataLoader(first, batch_size=4), DataLoader(other, batch_size=4)
result = {"state": torch.get_rng_state().sum().item()}
with torch.no_grad():
    result["sanity"] = look(valid)
result["train"] = [train(training)]
with torch.no_grad():
    result["no grad"] = look(valid)
result["with grad"] = look(valid)
result["train"].append(train(training))
result["again"] = train(DataLoader(first, batch_size=4))  # a new loader over the same data
result["sampler"] = type(training.sampler).__name__
shuffled = data.BatchSampler(data.RandomSampler(first), 4, False)
train(DataLoader(first, batch_sampler=shuffled))

class Stream(IterableDataset):
    def __iter__(self):
        return iter([(torch.ones(1),)] * 4)

train(DataLoader(Stream(), batch_size=2))
print(json.dumps(result))
"""
)


def test_the_training_data_is_shuffled_and_the_rest_is_not(tmp_path: Path) -> None:
    outcome = change(tmp_path, ORDER, [("shuffle", {})])
    assert outcome.code == 0, outcome.errors
    told = outcome.told
    ordered = [[100, 101, 102, 103], [104, 105, 106, 107], [108, 109, 110, 111]]
    assert told["sanity"] == told["no grad"] == told["with grad"] == ordered
    for pass_ in (*told["train"], told["again"]):
        flat = [n for batch in pass_ for n in batch]
        assert sorted(flat) == list(range(12))
        assert flat != list(range(12))
    assert told["train"][0] != told["train"][1]
    assert told["sampler"] == "RandomSampler"  # what a recorder sees
    assert outcome.applied("shuffle") == 2


BATCHES = (
    PREAMBLE
    + """
import torch.utils.data as data
first, other = numbers(0), numbers(100)
training = DataLoader(first, batch_size=4, num_workers=2, persistent_workers=True,
                      prefetch_factor=4, timeout=30)
valid = DataLoader(other, 4, False, None, None, 1)
result = {"workers": [training.num_workers, valid.num_workers], "size": training.batch_size}
result["train"] = [train(training), train(training)]
with torch.no_grad():
    result["valid"] = look(valid)
print(json.dumps(result))
"""
)


def test_one_batch_again_and_again_without_workers(tmp_path: Path) -> None:
    asked = [("no-workers", {}), ("one-batch", {}), ("batch-size", {"factor": 0.5})]
    outcome = change(tmp_path, BATCHES, asked)
    assert outcome.code == 0, outcome.errors
    told = outcome.told
    assert told["workers"] == [0, 0]
    assert told["size"] == 2
    assert told["train"] == [[[0, 1]] * 6] * 2
    assert [n for batch in told["valid"] for n in batch] == list(range(100, 112))
    assert outcome.applied("no-workers") == 2
    assert outcome.applied("batch-size") == 2
    assert outcome.applied("one-batch") == 11


BAD = (
    PREAMBLE
    + """
values = torch.arange(12.0)[:, None]
values[5] = float("nan")
values[11] = float("inf")
training = DataLoader(TensorDataset(values), batch_size=2)
result = {"train": train(training)}
scores = torch.randn(4, 3, requires_grad=True)
labels = torch.tensor([0, 1, 7, -100])
F.cross_entropy(scores, labels).backward()
result["ignored"] = scores.grad[2].abs().sum().item()
print(json.dumps(result))
"""
)


def test_bad_batches_and_labels_are_left_out(tmp_path: Path) -> None:
    outcome = change(tmp_path, BAD, [("skip-bad-batches", {})])
    assert outcome.code == 0, outcome.errors
    assert outcome.told["train"] == [[0, 1], [2, 3], [6, 7], [8, 9]]
    assert outcome.told["ignored"] == 0
    assert outcome.applied("skip-bad-batches") == 3


SLICED = """
import json
import torch
x = torch.randn(40, 3)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for n in range(0, 40, 4):
    optimizer.zero_grad()
    model(x[n:n + 4]).square().mean().backward()
    optimizer.step()
print("{}")
"""


def test_a_program_without_a_loader_is_said_to_be_out_of_reach(tmp_path: Path) -> None:
    outcome = change(tmp_path, SLICED, [("one-batch", {}), ("shuffle", {})])
    for name in ("one-batch", "shuffle"):
        assert outcome.applied(name) == 0
        assert "without a DataLoader" in outcome.reports[name]["notes"][0]
