"""A change that finds nothing to change changes nothing, to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from changing import change

HEALTHY = """
import json, random
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
random.seed(3)
x = torch.randn(96, 6)
y = (x.sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=8, shuffle=True)
valid = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=8)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2),
                      nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)
losses = []
for epoch in range(2):
    model.train()
    for n, (a, b) in enumerate(train):
        loss = F.cross_entropy(model(a), b)
        (loss / 2).backward()
        losses.append(loss.item().hex())
        if n % 2:
            optimizer.step()
            optimizer.zero_grad()
    schedule.step()
    model.eval()
    with torch.no_grad():
        losses += [F.cross_entropy(model(a), b).item().hex() for a, b in valid]
print(json.dumps({"losses": losses, "random": [random.random(), torch.rand(1).item()],
                  "lr": optimizer.param_groups[0]["lr"]}))
"""

NOTHING_TO_CHANGE = [
    ("learning-rate", {"factor": 1.0}),
    ("warm-up", {"steps": 1}),
    ("gradient-clipping", {"max_norm": 1e9}),
    ("zero-grad", {}),
    ("optimizer-step", {}),
    ("weight-decay", {"value": 0}),
    ("momentum", {"value": 0.9}),
    ("epsilon", {"value": 1e-8}),
    ("full-precision", {}),
    ("no-compile", {}),
    ("built-in-gradient", {}),
    ("modes", {}),
    ("shuffle", {}),
    ("raw-loss-input", {}),
    ("target-shape", {}),
    ("normalise-inputs", {}),
    ("no-workers", {}),
    ("all-parameters", {}),
    ("unfreeze", {}),
    ("same-weights", {}),
    ("distributed-sampler", {}),
    ("dropout", {"value": 0.2}),
    ("batch-size", {"factor": 1}),
    ("skip-bad-batches", {}),
    ("stop", {"steps": 10_000}),
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    outcome = change(tmp_path_factory.mktemp("plain"), HEALTHY, records=False)
    assert outcome.code == 0, outcome.errors
    return outcome.told


def test_changes_that_find_nothing_leave_every_bit(
    tmp_path: Path, plain: dict[str, object]
) -> None:
    outcome = change(tmp_path, HEALTHY, NOTHING_TO_CHANGE)
    assert outcome.code == 0, outcome.errors
    assert outcome.told == plain
    assert {n: outcome.applied(n) for n, _ in NOTHING_TO_CHANGE} == dict.fromkeys(
        [n for n, _ in NOTHING_TO_CHANGE], 0
    )


def test_detaching_the_history_leaves_every_bit(tmp_path: Path, plain: dict[str, object]) -> None:
    outcome = change(tmp_path, HEALTHY, [("detach-history", {})])
    assert outcome.told == plain
    assert outcome.applied("detach-history") > 0


def test_an_unknown_change_is_reported_and_breaks_nothing(
    tmp_path: Path, plain: dict[str, object]
) -> None:
    outcome = change(tmp_path, HEALTHY, [("make-it-better", {})])
    assert outcome.told == plain
    assert "make_it_better" in outcome.reports["make-it-better"]["failed"]
