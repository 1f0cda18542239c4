"""The pattern that a curve repeats within its epochs."""

from __future__ import annotations

import numpy as np

from traindx.analysis.epochs import EpochPattern, cite_unshuffled, epoch_pattern
from traindx.examples import make_run


def pattern_of(epoch: np.ndarray, epochs: int = 5) -> EpochPattern | None:
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(epoch) * epochs)
    marks = np.repeat(np.arange(epochs, dtype=float), len(epoch))
    run = make_run({"loss/train": np.tile(epoch, epochs) + noise}, epochs=marks)
    return epoch_pattern(run.series["loss/train"])


def test_a_sawtooth_is_alike_in_all_epochs_but_the_first():
    found = pattern_of(np.tile(np.linspace(2.0, 0.4, 20), 3))
    assert found is not None
    assert found.epochs == 4
    assert found.likeness > 0.95
    assert found.persistence > 0.5
    assert not found.only_falls


def test_batches_in_a_fixed_order_repeat_without_persistence():
    found = pattern_of(0.6 + 0.2 * np.random.default_rng(3).standard_normal(60))
    assert found is not None
    assert found.likeness > 0.9
    assert found.persistence < 0.35


def test_a_running_average_only_falls():
    found = pattern_of(np.geomspace(1.0, 0.5, 60))
    assert found is not None
    assert found.only_falls


def test_two_epochs_are_too_few():
    assert pattern_of(np.linspace(1.0, 0.5, 60), epochs=2) is None


def test_shuffling_that_is_turned_off_is_cited():
    assert cite_unshuffled(make_run(config={"data.shuffle": False}))
    assert not cite_unshuffled(make_run(config={"data.shuffle": True}))
