"""Changes around the optimizer's step and the backward pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from changing import Outcome, change


def recorded(outcome: Outcome, kind: str) -> list[dict[str, Any]]:
    """What the recorder saw of a program with changes in it."""
    (path,) = outcome.folder.glob("rank*.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [r for r in records if r["k"] == kind]


SETTINGS = """
import json
import torch

weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
optimizer = torch.optim.SGD([weight], lr=1.0, weight_decay=0.5)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
seen, moved = [], []
for _ in range(4):
    before = weight.item()
    optimizer.zero_grad()
    (weight * 8).sum().backward()
    optimizer.step()
    moved.append(before - weight.item())
    schedule.step()
    seen.append(optimizer.param_groups[0]["lr"])
tensor = torch.optim.Adam([weight], lr=torch.tensor(0.1, dtype=torch.float64), capturable=False,
                          foreach=False)
own = tensor.param_groups[0]["lr"]
(weight * 8).sum().backward()
tensor.step()
print(json.dumps({"seen": seen, "moved": moved, "is_own": tensor.param_groups[0]["lr"] is own}))
"""


def test_settings_hold_for_the_step_and_schedulers_go_their_way(tmp_path: Path) -> None:
    asked = [
        ("learning-rate", {"factor": 0.1}),
        ("warm-up", {"steps": 2}),
        ("gradient-clipping", {"max_norm": 2.0}),
        ("weight-decay", {"value": 0}),
    ]
    outcome = change(tmp_path, SETTINGS, asked)
    assert outcome.code == 0, outcome.errors
    told = outcome.told
    assert told["seen"] == [0.5, 0.25, 0.125, 0.0625]
    assert told["is_own"]
    wanted = [2 * 0.1 * rate for rate in (1.0 * 0.5, 0.5, 0.25, 0.125)]
    assert all(abs(a - b) < 1e-6 for a, b in zip(told["moved"], wanted, strict=True))
    rates = [rate for record in recorded(outcome, "steps") for rate in record["lr"]]
    assert rates[:4] == [0.05, 0.05, 0.025, 0.0125]
    assert outcome.applied("learning-rate") == 5
    assert outcome.applied("warm-up") == 2  # the first step of each optimizer
    assert outcome.applied("gradient-clipping") == 5
    assert outcome.applied("weight-decay") == 4


FORGETFUL = """
import json
import torch

torch.manual_seed(0)
result = {}

def gradients(clears, steps_every):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    seen = []
    for n in range(6):
        if clears == "before":
            optimizer.zero_grad()
        elif clears == "in place" and n:
            optimizer.zero_grad(set_to_none=False)
        weight.sum().backward()
        seen.append(weight.grad.item())
        if (n + 1) % steps_every == 0:
            optimizer.step()
            if clears == "after":
                optimizer.zero_grad()
    return seen

from traindx_interventions import reports
count = reports.of("zero-grad")
def counted(*case):
    before = count.applied
    seen = gradients(*case)
    return seen, count.applied - before
result["never"] = counted("never", 1)
result["before"] = counted("before", 1)
result["in place"] = counted("in place", 1)
result["accumulating"] = counted("after", 3)
result["accumulating, never"] = counted("never", 3)

# two networks, one loss that runs through both: each is cleared before its own backward pass
first, second = (torch.nn.Parameter(torch.ones(1)) for _ in "12")
one, two = (torch.optim.SGD([p], lr=0.1) for p in (first, second))
before = count.applied
for _ in range(3):
    one.zero_grad()
    (first * 2).sum().backward()
    one.step()
    two.zero_grad()
    (first * second).sum().backward()
    two.step()
result["two networks"] = ([first.grad.item()], count.applied - before)

# with a closure, as Lightning does it
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=0.0)
def closure():
    loss = weight.sum()
    loss.backward()
    return loss
before = count.applied
seen = []
for _ in range(3):
    optimizer.step(closure)
    seen.append(weight.grad.item())
result["closure"] = (seen, count.applied - before)
print(json.dumps(result))
"""


def test_left_over_gradients_are_cleared_and_accumulated_ones_stay(tmp_path: Path) -> None:
    outcome = change(tmp_path, FORGETFUL, [("zero-grad", {})])
    assert outcome.code == 0, outcome.errors
    told = outcome.told
    assert told["never"] == [[1] * 6, 5]
    assert told["before"] == [[1] * 6, 0]
    assert told["in place"] == [[1] * 6, 0]
    assert told["accumulating"] == [[1, 2, 3, 1, 2, 3], 0]
    assert told["accumulating, never"] == [[1, 2, 3, 1, 2, 3], 1]
    assert told["two networks"][1] == 0
    assert told["closure"] == [[1, 1, 1], 2]
    assert not outcome.reports["zero-grad"]["failed"]


STEPLESS = """
import json, sys
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for n in range(30):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    losses.append(loss.item())
    if n == STEPS_AT:
        optimizer.step()
print(json.dumps({"losses": losses}))
"""


ENDLESSLY_FORGETFUL = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for _ in range(8):
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
"""


def test_the_recorder_sees_the_gradients_cleared(tmp_path: Path) -> None:
    as_it_is = change(tmp_path / "a", ENDLESSLY_FORGETFUL)
    changed = change(tmp_path / "b", ENDLESSLY_FORGETFUL, [("zero-grad", {})])
    assert {s["carried"] for s in recorded(as_it_is, "sample")[1:]} == {True}
    assert {s["carried"] for s in recorded(changed, "sample")[1:]} == {False}
    assert changed.applied("zero-grad") == 7


def test_a_program_that_never_steps_is_stepped(tmp_path: Path) -> None:
    never = change(tmp_path / "never", STEPLESS.replace("STEPS_AT", "-1"), [("optimizer-step", {})])
    assert never.applied("optimizer-step") == 28
    assert recorded(never, "counts")[-1]["steps"] == 28
    assert never.told["losses"][-1] < 0.3 * never.told["losses"][0]


def test_a_program_that_steps_after_all_is_left_alone(tmp_path: Path) -> None:
    once = change(tmp_path / "late", STEPLESS.replace("STEPS_AT", "9"), [("optimizer-step", {})])
    assert once.applied("optimizer-step") == 8
    assert "left alone" in once.reports["optimizer-step"]["notes"][0]


CLIPPED = """
import json
import torch
from torch import nn

# Lightning hands a closure to the step; with a fused step the scale is removed inside of it
weight = nn.Parameter(torch.zeros(4))
optimizer = torch.optim.SGD([weight], lr=1.0)
def closure():
    optimizer.zero_grad()
    loss = (weight * 100).sum()
    loss.backward()
    return loss
optimizer.step(closure)
moved = weight.detach().norm().item()
bad = nn.Parameter(torch.zeros(1))
other = torch.optim.SGD([bad], lr=1.0)
(bad * float("inf")).sum().backward()
other.step()
nothing = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
nothing.step()
print(json.dumps({"moved": moved}))
"""


def test_gradients_of_a_closure_are_clipped_and_bad_ones_left(tmp_path: Path) -> None:
    outcome = change(tmp_path, CLIPPED, [("gradient-clipping", {"max_norm": 0.5})])
    assert outcome.code == 0, outcome.errors
    assert abs(outcome.told["moved"] - 0.5) < 1e-4
    assert outcome.applied("gradient-clipping") == 1
    assert "not finite" in outcome.reports["gradient-clipping"]["notes"][0]


MISSING = """
import json
import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
        self.body.requires_grad_(FROZEN == 0)

    def forward(self, x):
        return self.head(self.body(x))

net, teacher = Net(), nn.Linear(4, 1).requires_grad_(False).eval()
optimizer = torch.optim.AdamW(net.head.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
start = net.body.weight.clone()
before = teacher.weight.clone()
x = torch.randn(8, 4)
for _ in range(3):
    optimizer.zero_grad()
    loss = (net(x) - teacher(x)).square().mean()
    loss.backward()
    optimizer.step()
    schedule.step(loss.item())
print(json.dumps({"moved": not torch.equal(start, net.body.weight),
                  "teacher": not torch.equal(before, teacher.weight)}))
"""


def test_an_optimizer_gets_what_it_lacks(tmp_path: Path) -> None:
    held = change(tmp_path / "a", MISSING.replace("FROZEN", "0"), [("all-parameters", {})])
    assert held.told == {"moved": True, "teacher": False}, held.errors
    assert held.applied("all-parameters") == 2
    thawed = change(tmp_path / "b", MISSING.replace("FROZEN", "1"), [("unfreeze", {})])
    assert thawed.told == {"moved": True, "teacher": False}, thawed.errors
    assert thawed.applied("unfreeze") == 2
