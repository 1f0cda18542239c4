"""Every rerun is measured alike, and nothing of it changes the program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from changing import Outcome, change

from traindx.experiments.changes import Change, Rerun
from traindx.experiments.probes.census import read_census
from traindx.experiments.probes.measurements import FITS, main_metric, measured
from traindx.experiments.probes.reference_floors import read_examples

CLASSES = """
import json, torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
x = torch.randn(300, 6); y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
xt, yt, xv, yv = x[:200], y[:200], x[200:], y[200:]
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.02)
seen = []
for epoch in range(4):
    model.train()
    for i in range(0, 200, 20):
        loss = F.cross_entropy(model(xt[i:i + 20]), yt[i:i + 20], label_smoothing=0.1)
        optimizer.zero_grad(); loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        seen.append(loss.item())
    model.eval()
    with torch.no_grad():
        EVALUATE
print(json.dumps({"losses": seen, "score": score, "plain": plain}))
"""
PLAIN = "plain = F.cross_entropy(model(xv), yv).item()"
SCORE = "score = (model(xv).argmax(1) == yv).float().mean().item()"
SMOOTHED = (
    "F.cross_entropy(model(xv), yv, label_smoothing=0.1); "
    "was = F.log_softmax(model(xv), 1); plain = -was[range(100), yv].mean().item()"
)
MEASURE: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("program-census", {"keeps_data": True}),
    ("yardstick", {}),
)


def classes(evaluate: str) -> str:
    return CLASSES.replace("EVALUATE", evaluate)


def rerun_of(outcome: Outcome) -> Rerun:
    assert outcome.code == 0, outcome.errors
    assert not any(r["failed"] for r in outcome.reports.values()), outcome.reports
    return Rerun(Change(), 0, outcome.folder, outcome.code)


@pytest.mark.parametrize(
    "evaluate", [f"{PLAIN}; {SCORE}", f"{SCORE}; {PLAIN}", f"{SMOOTHED}; {SCORE}"]
)
def test_held_out_loss_and_score_are_the_plain_ones(tmp_path: Path, evaluate: str) -> None:
    outcome = change(tmp_path, classes(evaluate), MEASURE)
    found = measured(rerun_of(outcome))
    assert main_metric(found) == "accuracy/val"
    assert found.metrics["accuracy/val"].values[-1] == pytest.approx(
        outcome.told["score"], abs=1e-5
    )
    assert found.metrics["loss/val"].values[-1] == pytest.approx(outcome.told["plain"], abs=1e-5)
    assert found.metrics["loss/val"].rows == (200.0, 400.0, 600.0, 800.0)
    assert len(found.metrics[FITS].values) > 3


def test_a_score_by_hand_alone_tells_the_held_out_loss_as_well(tmp_path: Path) -> None:
    outcome = change(tmp_path, classes(f"{SCORE}; plain = 0"), MEASURE)
    found = measured(rerun_of(outcome))
    assert found.metrics["accuracy/val"].level == pytest.approx(outcome.told["score"], abs=1e-5)
    assert 0 < found.metrics["loss/val"].level < 2


def test_a_score_on_training_data_is_not_held_out(tmp_path: Path) -> None:
    on_training = SCORE.replace("xv", "xt").replace("yv", "yt")
    found = measured(rerun_of(change(tmp_path, classes(f"{on_training}; plain = 0"), MEASURE)))
    assert main_metric(found) == FITS


def test_measuring_changes_no_bit(tmp_path: Path) -> None:
    program = classes(f"{PLAIN}; {SCORE}")
    plain = change(tmp_path / "plain", program, [("seed", {"seed": 0})])
    seen = change(tmp_path / "seen", program, [("seed", {"seed": 0}), *MEASURE])
    assert seen.told == plain.told


def test_the_census_sees_what_could_be_changed(tmp_path: Path) -> None:
    outcome = change(tmp_path, classes(f"{PLAIN}; {SCORE}"), MEASURE)
    facts = read_census(rerun_of(outcome).folder)
    assert facts.main is not None
    assert (facts.main.type, facts.main.most, facts.main.decay) == ("Adam", 0.01, 0.02)
    assert facts.dropout == pytest.approx(0.3)
    assert facts.smoothing == pytest.approx(0.1)
    assert facts.clip_calls == 40
    assert facts.clipped > 30
    assert (facts.rows, facts.classes, facts.loss_kind) == (20, 3, "classes")
    assert not facts.trained_in_eval
    assert all(0.5 < layer["ratio"] < 2 for layer in facts.layers)
    examples = read_examples(outcome.folder)
    assert examples is not None
    assert examples.is_held_out
    assert (len(examples.x), len(examples.held_x)) == (200, 100)


VALUES = """
import json, torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(200, 4); y = 500 + 80 * x[:, :1]
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(20):
    for i in range(0, 200, 20):
        error = LOSS
        optimizer.zero_grad(); error.backward(); optimizer.step()
with torch.no_grad():
    print(json.dumps({"mse": ((model(x) - y) ** 2).mean().item()}))
"""


@pytest.mark.parametrize(
    "loss",
    [
        "nn.functional.mse_loss(model(x[i:i + 20]), y[i:i + 20])",
        "((model(x[i:i + 20]) - y[i:i + 20]) ** 2).mean()",
    ],
)
def test_targets_are_standardised_and_outputs_stay_in_their_units(
    tmp_path: Path, loss: str
) -> None:
    program = VALUES.replace("LOSS", loss).replace("lr=0.05", "lr=1e-4")
    plain = change(tmp_path / "plain", program)
    slow = plain.told["mse"]
    mended = change(
        tmp_path / "mended", program.replace("lr=1e-4", "lr=0.05"), [("standardise-targets", {})]
    )
    assert mended.applied("standardise-targets") > 100
    assert mended.told["mse"] < 0.05 * slow


HALF = """
import json, torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(64, 4, dtype=torch.bfloat16); y = x[:, :1] * 2
model = nn.Linear(4, 1).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=5e-4)
for step in range(2000):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
print(json.dumps({"loss": loss.item(), "dtype": str(model.weight.dtype)}))
"""


def test_small_updates_are_kept_in_single_precision(tmp_path: Path) -> None:
    lost = change(tmp_path / "lost", HALF)
    kept = change(tmp_path / "kept", HALF, [("master-weights", {})])
    assert kept.applied("master-weights") == 2000
    assert kept.told["dtype"] == "torch.bfloat16"
    assert kept.told["loss"] < 0.7 * lost.told["loss"]


def test_clipping_and_smoothing_are_taken_out_of_training_alone(tmp_path: Path) -> None:
    asked = [("no-clipping", {}), ("label-smoothing", {}), *MEASURE]
    outcome = change(tmp_path, classes(f"{SMOOTHED}; {SCORE}"), asked)
    assert outcome.applied("label-smoothing") == 40
    assert outcome.applied("no-clipping") > 30
    plain = change(tmp_path / "plain", classes(f"{SMOOTHED}; {SCORE}"))
    assert outcome.told["score"] >= plain.told["score"]


SCHEDULE = """
import json, torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
steps = []
for _ in range(5):
    was = model.bias.item()
    optimizer.zero_grad(); model(torch.ones(1, 2)).sum().backward(); optimizer.step()
    schedule.step(); steps.append(round(was - model.bias.item(), 4))
print(json.dumps(steps))
"""


def test_a_rate_without_its_schedule_stays_where_it_began(tmp_path: Path) -> None:
    outcome = change(tmp_path, SCHEDULE, [("learning-rate", {"constant": True})])
    assert json.dumps(outcome.told) == json.dumps([0.1] * 5)


RECORDED = """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(300, 4); y = 5000 + 80 * x[:, 0]
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
nn.init.constant_(model[2].bias, 5000.0)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(60):
    loss = ((model(x[:200]).squeeze(-1) - y[:200]) ** 2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
with torch.no_grad():
    out = model(x[200:]).squeeze(-1)
    print((out == out.round()).float().mean().item(), ((out - y[200:]) ** 2).mean().item())
"""


def test_comparisons_that_are_no_prediction_are_no_score(tmp_path: Path) -> None:
    found = measured(rerun_of(change(tmp_path, RECORDED, MEASURE)))
    assert main_metric(found) == "mse/val"
    assert "accuracy/val" not in found.metrics
