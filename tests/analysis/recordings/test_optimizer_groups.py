"""The settings of recorded optimizers."""

from dataclasses import replace

import numpy as np
import pytest

from traindx.analysis.recordings.optimizer_groups import (
    decays_weights,
    heaviest_decay,
    heavy_momentum,
    holds_copies,
    is_ruled_by_decay,
    learning_rates,
)
from traindx.analysis.recordings.traces import traces_of
from traindx.examples import watched, weights
from traindx.model.recording import Optimizer, Process


def with_group(**group: float) -> Process:
    return Process(optimizers=(Optimizer(1, type="SGD", groups=(group,)),))


def test_rates_of_the_groups():
    assert learning_rates(Optimizer(1, groups=({"lr": 0.1}, {"lr": None}))) == [0.1]


def test_momentum_is_heavy_for_its_rate():
    found = heavy_momentum(with_group(lr=0.05, momentum=0.99))
    assert found is not None and found[1:] == pytest.approx((0.99, 0.05))
    assert heavy_momentum(with_group(lr=0.05, momentum=0.9)) is None
    assert heavy_momentum(with_group(lr=0.05, momentum=0.99, dampening=0.9)) is None


def test_the_heaviest_decay_of_all_groups():
    found = heaviest_decay(with_group(weight_decay=0.1))
    assert found is not None and found[1] == 0.1
    assert heaviest_decay(Process()) is None
    assert decays_weights(found[0])
    assert not decays_weights(Optimizer(1, groups=({"lr": 0.1},)))


def test_a_coupled_penalty_may_rule_the_loss():
    process = watched(*weights("a"), weight_norms=(2.0,))
    optimizer = Optimizer(1, type="SGD")
    known, loss = traces_of(process), np.full(20, 0.2)
    assert is_ruled_by_decay(process, optimizer, 0.1, 0.4, known, loss)
    decoupled = replace(optimizer, type="AdamW")
    assert not is_ruled_by_decay(process, decoupled, 0.1, 0.4, known, loss)
    assert not is_ruled_by_decay(process, optimizer, 0.1, 0.4, known, 100 * loss)


def test_copies_of_a_model_that_nobody_holds():
    free = watched(*weights("0.weight", "1.weight", optimizer=None))
    copies = replace(free, optimizers=(Optimizer(1, 0, "Adam", size=2, strangers=2),))
    assert holds_copies(copies, 0)
    assert not holds_copies(copies, 1)
    owned = watched(*weights("0.weight", "1.weight"))
    assert not holds_copies(replace(owned, optimizers=copies.optimizers), 0)
    assert not holds_copies(replace(copies, optimizers=(Optimizer(1, 0, size=2, strangers=1),)), 0)
