"""Chance and the end of a rerun."""

from __future__ import annotations

import json
from pathlib import Path

from changing import Outcome, change

CHANCE = """
import random
early = random.random()  # before torch
import json
import numpy as np
import torch

result = {"early": early, "free": [random.random(), np.random.rand(), torch.rand(1).item()]}
torch.seed(); random.seed(); np.random.seed()
result["asked for chance"] = [random.random(), np.random.rand(), torch.rand(1).item()]
random.seed(5); np.random.seed(5); torch.manual_seed(5)
result["seeded"] = [random.random(), np.random.rand(), torch.rand(1).item(),
                    np.random.default_rng(5).random(), torch.initial_seed()]
result["rng"] = np.random.default_rng().random()
result["text"] = (random.seed("words"), random.random())[1]
print(json.dumps(result))
"""


def test_seeds_are_fixed_and_moved(tmp_path: Path) -> None:
    def told(name: str, seed: int, offset: int) -> dict[str, object]:
        outcome = change(tmp_path / name, CHANCE, [("seed", {"seed": seed, "offset": offset})])
        assert outcome.code == 0, outcome.errors
        assert outcome.applied("seed") == 1
        return outcome.told

    first, again, other = told("a", 1, 0), told("b", 1, 0), told("c", 2, 2)
    assert first == again
    for name in ("early", "free", "asked for chance", "seeded", "rng"):
        assert first[name] != other[name], name
    assert first["text"] == other["text"]
    assert first["seeded"][-1] == 5  # type: ignore[index]
    assert other["seeded"][-1] == 7  # type: ignore[index]


ENDLESS = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

print("begins")
loader = DataLoader(TensorDataset(torch.randn(32, 2)), batch_size=2, num_workers=1)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while True:
    for x, in loader:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        print("steps")
"""


def counts(outcome: Outcome) -> list[dict[str, object]]:
    records = [
        json.loads(line)
        for path in outcome.folder.glob("rank*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return [r for r in records if r.get("is_end")]


def test_a_run_is_stopped_after_its_steps_with_all_that_was_said(tmp_path: Path) -> None:
    outcome = change(tmp_path, ENDLESS, [("stop", {"steps": 7})])
    assert outcome.code == 0, outcome.errors
    assert outcome.output.split() == ["begins", *["steps"] * 6]
    assert outcome.applied("stop") == 1
    assert [r["steps"] for r in counts(outcome)] == [7]


def test_a_run_that_never_steps_is_stopped_too(tmp_path: Path) -> None:
    outcome = change(
        tmp_path, ENDLESS.replace("optimizer.step()", "pass"), [("stop", {"steps": 70})]
    )
    assert outcome.code == 0, outcome.errors
    assert len(outcome.output.split()) == 70
    assert "70 backward passes" in outcome.reports["stop"]["notes"][0]


RANKS = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
data = TensorDataset(torch.arange(16.0)[:, None])
loader = DataLoader(data, batch_size=2)
plain = nn.Linear(1, 1)  # each rank has its own weights
joined = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
one = torch.optim.SGD(plain.parameters(), lr=0.0)
two = torch.optim.SGD(joined.parameters(), lr=0.0)
seen = []
while True:
    for x, in loader:
        seen += x[:, 0].long().tolist()
        one.zero_grad(); two.zero_grad()
        (plain(x) + joined(x)).sum().backward()
        if len(seen) == 8:
            told = [rank, plain.weight.item(), joined.module.weight.item(), *seen]
            os.write(1, f"RANK {' '.join(map(str, told))}\\n".encode())  # at once, not in pieces
        one.step()
        two.step()
"""


def test_ranks_get_the_same_weights_and_their_own_data_and_end_together(tmp_path: Path) -> None:
    asked = [("same-weights", {}), ("distributed-sampler", {}), ("stop", {"steps": 16})]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    outcome = change(tmp_path, RANKS, asked, launcher=launcher)
    assert outcome.code == 0, outcome.errors
    lines = sorted(line.split() for line in outcome.output.splitlines() if line.startswith("RANK"))
    assert lines[0][2:4] == lines[1][2:4]
    assert sorted(int(n) for line in lines for n in line[4:]) == list(range(16))
    assert outcome.applied("same-weights") == 2  # on the other rank, of the model not joined
    assert outcome.applied("distributed-sampler") == 2
    assert outcome.applied("stop") == 2
    assert [r["steps"] for r in counts(outcome)] == [16, 16]
