"""The metrics that count, and how near to their best they end."""

from __future__ import annotations

import numpy as np

from traindx.analysis.courses.main_metrics import (
    far_from_best,
    held_out_metrics,
    jumpy_loss,
    left_best,
    main_metrics,
)
from traindx.examples import decay, logged, make_run

TENT = np.concatenate([np.linspace(0.5, 0.8, 10), np.linspace(0.8, 0.5, 20)])
NOISE = 0.004 * np.random.default_rng(0).standard_normal(30)


def test_the_whole_stands_for_its_parts() -> None:
    parts = {"loss/val": decay(9), "loss/val/box": decay(9), "time/val/runtime": decay(9)}
    assert [s.name for s in held_out_metrics(make_run(parts))] == ["loss/val"]
    run = make_run({"loss/train": decay(9), "reward/train": decay(9), "loss/val/box": decay(9)})
    names = {s.name for s in main_metrics(run)}
    assert names == {"reward/train", "loss/val/box"}  # a policy's loss is not meant to fall


def test_a_metric_that_holds_speaks_for_the_run() -> None:
    assert left_best(logged(accuracy_val=TENT + NOISE)) is not None
    kept = logged(accuracy_val=TENT + NOISE, loss_val=decay(30))
    assert left_best(kept) is None and far_from_best(kept) is None


def test_far_from_best_leaves_the_floor_alone() -> None:
    assert far_from_best(logged(loss_val=np.append(decay(20), [0.9, 0.9, 0.95, 1.0]))) is not None
    assert far_from_best(logged(loss_val=np.append(decay(20, 2.3, 1e-4), [4e-4] * 4))) is None


def test_jumps() -> None:
    jumps = np.where(np.arange(20) % 2, 1.0, 2.0)
    assert jumpy_loss(logged(loss_val=jumps)) is not None
    assert jumpy_loss(logged(loss_val=decay(20))) is None
