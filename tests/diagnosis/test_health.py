"""A clean bill is earned: something improves, nothing is odd, and the user suffers from nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from traindx.diagnosis.engine import diagnose
from traindx.diagnosis.health import health_of
from traindx.examples import logged, make_run, recorded, sampled
from traindx.model.findings import Status
from traindx.model.run import Run

RNG = np.random.default_rng(0)
FALLING = 2.3 * np.exp(-np.arange(100) / 30) + 0.3 + 0.02 * RNG.standard_normal(100)
FLAT = 0.7 + 0.02 * RNG.standard_normal(100)


def test_a_loss_that_falls_is_seen() -> None:
    health = health_of(logged(loss_train=FALLING))
    assert health.is_earned
    assert "goes from" in health.seen[0]
    assert any("held-out" in text for text in health.unseen)


@pytest.mark.parametrize(
    "run",
    [
        logged(loss_train=FLAT),
        make_run(sources={"train.py": "import torch\n"}),
        make_run(),
    ],
    ids=["flat", "source alone", "nothing"],
)
def test_what_was_not_seen_is_not_healthy(run: Run) -> None:
    assert not health_of(run).is_earned


@pytest.mark.parametrize(
    "run",
    [
        logged(loss_train=FALLING, accuracy_val=np.linspace(0.5, 2.0, 20)),
        logged(loss_train=-np.linspace(0, 9e7, 50)),
        recorded(sampled(20, names=("w",), grad_norms=(None,)), loss_train=FALLING),
        recorded(sampled(20, names=("w",), has_moved=(False,)), loss_train=FALLING),
    ],
    ids=["accuracy of 2", "a loss without a floor", "no gradient ever", "nothing moves"],
)
def test_what_is_odd_excludes_a_clean_bill(run: Run) -> None:
    assert health_of(run).odd
    assert diagnose(run).status is not Status.HEALTHY


def test_accuracy_in_percent_and_negative_losses_are_not_odd() -> None:
    percent = logged(loss_train=FALLING, accuracy_val=np.linspace(10.0, 92.0, 20))
    likelihood = logged(loss_train=np.linspace(3.0, -4.0, 50))
    assert health_of(percent).is_earned and health_of(likelihood).is_earned


def test_what_the_user_suffers_from_excludes_a_clean_bill() -> None:
    run = logged(loss_train=FALLING)
    assert diagnose(run).status is Status.HEALTHY
    suffering = diagnose(replace(run, symptoms=("it is too slow",)))
    assert suffering.status is Status.INSUFFICIENT
    assert "What was seen" in suffering.summary


def test_a_side_metric_earns_nothing_where_the_loss_stands_still() -> None:
    parts = {"loss/train": FLAT, "loss/train/aux": FALLING, "time/step": FALLING}
    assert not health_of(make_run(parts)).is_earned


@pytest.mark.parametrize(
    "run",
    [
        logged(loss_train=FALLING, loss_val=np.linspace(1.0, 3.0, 40)),
        logged(loss_train=FALLING, accuracy_val=np.zeros(20)),
        logged(loss_train=FALLING, accuracy_val=np.append(np.linspace(0.2, 0.8, 10), [0.3] * 20)),
        logged(loss_train=FALLING, accuracy_val=np.linspace(0.02, 0.11, 20)),
    ],
    ids=["validation worsens", "nothing right ever", "left its best", "hardly anything right"],
)
def test_no_clean_bill_where_held_out_data_say_otherwise(run: Run) -> None:
    assert not health_of(run).is_earned


def test_the_three_answers_differ() -> None:
    healthy = diagnose(logged(loss_train=FALLING, loss_val=FALLING + 0.02))
    little = diagnose(logged(loss_train=FALLING[:2]))
    is_open = diagnose(logged(loss_train=FLAT))
    assert healthy.status is Status.HEALTHY and "its best is" in healthy.summary
    assert little.status is Status.INSUFFICIENT and "little could be judged" in little.summary
    assert any("log" in q for q in little.questions)
    assert is_open.status is Status.INSUFFICIENT and is_open.hypotheses


def test_what_is_learnt_within_the_first_steps_counts() -> None:
    noise = 0.05 * np.random.default_rng(0).normal(size=300)
    quick = make_run({"loss/train": np.r_[3.2, 1.9, 0.9, 0.5, np.full(296, 0.33)] + noise})
    assert health_of(quick).learns
    assert "from 1.8" in health_of(quick).seen[0] or "from 1.9" in health_of(quick).seen[0]
    assert not health_of(make_run({"loss/train": 0.33 + noise})).learns
