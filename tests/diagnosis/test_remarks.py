"""A remark that cannot make the trouble at hand is no root cause of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from traindx.diagnosis.code_check import diagnose_code
from traindx.diagnosis.engine import diagnose
from traindx.examples import make_run
from traindx.model.findings import Diagnosis, Status
from traindx.model.run import Run

OLD_NAME = """
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.cuda.amp.GradScaler()
for x, y in loader:
    optimizer.zero_grad()
    with torch.cuda.amp.autocast():
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
UNSEEDED = """
import random
import numpy as np
import torch
from torch import nn
random.seed(0)
np.random.seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
WITH_GRAD = """
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(9):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    for x, y in val_loader:
        correct = (model(x).argmax(1) == y).sum().item()
"""
PROGRAMS = {
    "deprecated-amp-api": OLD_NAME,
    "unseeded-randomness": UNSEEDED,
    "evaluation-with-grad": WITH_GRAD,
}
FALLING = 2.3 * np.exp(-np.arange(100) / 30) + 0.3
BROKEN = np.where(np.arange(100) < 60, FALLING, np.nan)


def run_of(cause: str, loss: object) -> Run:
    return make_run({"loss/train": loss}, sources={"train.py": PROGRAMS[cause]})  # type: ignore[dict-item]


def roots(diagnosis: Diagnosis) -> list[str]:
    return [h.cause for h in diagnosis.root_causes]


@pytest.mark.parametrize("cause", PROGRAMS)
def test_a_nan_run_is_not_laid_to_a_remark(cause: str) -> None:
    diagnosis = diagnose(run_of(cause, BROKEN))
    assert cause not in roots(diagnosis)
    assert any(f.shows == cause for f in diagnosis.remarks), "it is listed apart"
    if not roots(diagnosis):
        assert diagnosis.status is Status.INSUFFICIENT
        assert "NaN" in diagnosis.summary


@pytest.mark.parametrize("cause", PROGRAMS)
def test_it_is_the_answer_where_nothing_else_is_wrong(cause: str) -> None:
    assert roots(diagnose(run_of(cause, FALLING))) == [cause]
    assert roots(diagnose_code(make_run(sources={"train.py": PROGRAMS[cause]}))) == [cause]


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("deprecated-amp-api", "FutureWarning: deprecated"),
        ("unseeded-randomness", "Results differ between two runs"),
        ("evaluation-with-grad", "OOM in validation"),
    ],
)
def test_it_is_the_answer_to_whoever_asks_for_it(cause: str, words: str) -> None:
    run = run_of(cause, FALLING)
    assert cause in roots(diagnose(replace(run, symptoms=(words,))))
    assert cause not in roots(diagnose(replace(run, symptoms=("the loss became NaN",))))


def test_it_stays_a_remark_in_the_json() -> None:
    diagnosis = diagnose(run_of("deprecated-amp-api", BROKEN))
    assert Diagnosis.from_dict(diagnosis.to_dict()).asides == diagnosis.asides != frozenset()
