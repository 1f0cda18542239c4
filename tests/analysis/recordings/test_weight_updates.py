"""How far the steps of a recorded process move its weights."""

from math import log

import numpy as np
import pytest

from traindx.analysis.recordings.traces import traces_of
from traindx.analysis.recordings.weight_updates import (
    Wreck,
    at_full_rate,
    early_updates,
    erasing_update,
    growth,
    guess_loss,
    half_precision_matrices,
    is_limited_by_rate,
    is_mostly_still,
    is_warming,
    large_updates,
    lasting_updates,
    passes_over_data,
    starts_fresh,
    step_gains,
    travelled,
    update_ratios,
    uses_only,
    wrecking_update,
)
from traindx.examples import make_run, recorded, sampled, watched, weights
from traindx.model.recording import Epoch, LossInput, Optimizer, Parameter, Process
from traindx.model.run import Run

NAMES = weights("0.weight", "1.weight")


def test_updates_are_read_by_sample():
    process = watched(*NAMES, count=3, update_ratios=lambda i: (0.1 * i, 0.3))
    ratios = update_ratios(traces_of(process), max)
    assert [s.step for s, _ in ratios] == [0, 10, 20]
    assert [r for _, r in ratios] == [0.3, 0.3, 0.3]


def test_growth_is_that_of_the_middle_matrix():
    process = watched(*weights("a", "b", "c"), weight_norms=lambda i: (1.0, 1.0 + i, 9.0))
    assert growth(traces_of(process)) == 1.0
    assert growth([t for t in traces_of(process) if t.name == "b"]) == 6.0
    assert growth(traces_of(process), enough=99) == 1.0


def test_the_way_is_that_of_the_matrix_that_moves_most():
    traces = traces_of(watched(*NAMES, update_ratios=(0.01, 0.02)))
    assert travelled(traces, steps=100, enough=4) == pytest.approx(2.0)
    assert travelled(traces, steps=100, enough=99) is None


def test_kinds_of_optimizers():
    process = watched(*NAMES, optimizer=Optimizer(2, type="AdamW"))
    assert uses_only(process, "adam", "lion")
    assert not uses_only(process, "sgd")
    assert not uses_only(sampled(2), "adam")


def test_the_loss_of_a_guess_is_known_where_one_cross_entropy_is_all():
    given = LossInput("cross_entropy", classes=4)
    assert guess_loss(sampled(3, losses=(given,))) == log(4)
    assert guess_loss(sampled(3, losses=(given, given))) is None
    assert (
        guess_loss(sampled(3, losses=lambda i: (LossInput("cross_entropy", classes=i + 2),)))
        is None
    )


def test_a_step_alone_passes_on_a_part_of_the_spread():
    process = watched(*NAMES, count=1, update_ratios=(0.5, 0.5), weight_norms=(4.0, 4.0))
    assert list(step_gains(traces_of(process)).values()) == [pytest.approx(0.5)]


def test_a_rate_that_still_rises_at_the_end_warms_up():
    assert is_warming(np.linspace(0.1, 1.0, 10))
    assert not is_warming(np.full(10, 1.0))


def test_whole_passes_over_the_data_are_counted():
    epochs = (Epoch(1, 0, 20, trained=20), Epoch(2, 0, 9, trained=9, is_whole=False))
    assert passes_over_data(Process(epochs=epochs)) == 1


def test_a_model_that_guesses_starts_fresh():
    process = sampled(4, loss=2.3, losses=(LossInput("cross_entropy", classes=10),))
    assert starts_fresh(make_run(), process, np.full(20, 2.3))
    assert not starts_fresh(make_run(), process, np.full(20, 0.3))


def test_steps_of_adam_are_as_large_as_the_rate():
    def process(kind: str):
        return watched(
            *NAMES, update_ratios=(1e-5, 1e-5), optimizer=Optimizer(1, type=kind, size=2)
        )

    adam, plain = process("AdamW"), process("SGD")
    assert is_limited_by_rate(adam, traces_of(adam), 1e-3, 1e-6)
    assert not is_limited_by_rate(adam, traces_of(adam), 1e-3, 1.0)
    assert is_limited_by_rate(plain, traces_of(plain), 1e-3, 1e-5)
    assert not is_limited_by_rate(plain, traces_of(plain), 1e-3, 0.1)


def test_half_precision_weights_that_stay_where_they_were():
    names = [Parameter(n, (16, 16), "bfloat16", True, 0) for n in ("a", "b")]
    process = watched(*names, still=("a",))
    ((still, moving),) = half_precision_matrices(process)
    assert is_mostly_still(still) and not is_mostly_still(moving)
    rate = make_run({"lr": [*[1e-5] * 30, *[1e-3] * 40]}).get("lr")
    assert [s.step for s in at_full_rate(process, rate).samples] == [30, 40, 50]
    assert at_full_rate(process, None) is process


def test_updates_before_the_rate_decays():
    process = watched(*NAMES, count=12, step=lambda i: 4 * i, update_ratios=(0.15, 0.15))
    first, last, mean = early_updates(process, traces_of(process)) or (None, None, 0.0)
    assert first is not None and last is not None
    assert (first.step, last.step, mean) == (8, 44, pytest.approx(0.15))
    assert early_updates(watched(*NAMES, count=2), traces_of(watched(*NAMES, count=2))) is None


def test_a_first_step_that_outdoes_every_layer():
    def process(kind: str):
        return watched(
            *NAMES,
            optimizer=Optimizer(2, type=kind, size=2),
            weight_norms=lambda i: (120.0 if i else 4.0,) * 2,
            update_ratios=lambda i: (0.01 if i else 7.0,) * 2,
        )

    found = erasing_update(process("AdamW"), traces_of(process("AdamW")))
    assert found is not None and (found[0].step, found[1]) == (0, 7.0)
    assert erasing_update(process("SGD"), traces_of(process("SGD"))) is None


def updated(ratio: float, loss: list[float], norm: float = 1.0) -> Run:
    process = watched(
        *weights("a", "b", "c"), count=8, update_ratios=lambda i: (ratio if i < 1 else 0.001,) * 3,
        weight_norms=lambda i: (norm if i else 1.0,) * 3,
    )  # fmt: skip
    return recorded(process, loss_train=loss)


def test_a_first_step_that_replaces_the_weights():
    def wreck(run: Run) -> Wreck | None:
        process = run.recording.processes[0]
        return wrecking_update(run, process, traces_of(process))

    found = wreck(updated(7.0, [0.7, 400.0, *[0.7] * 30], norm=8.0))
    assert found is not None and found.is_seen and found.sample.step == 0
    assert wreck(updated(7.0, list(np.geomspace(0.7, 0.01, 30)), norm=8.0)) is None
    assert wreck(updated(0.5, [0.7] * 30, norm=8.0)) is None


def test_steps_that_stay_large():
    def run(ratio: float, end: float, norm: float = 0.0) -> Run:
        process = watched(
            *weights("a", "b", "c"), count=12, step=lambda i: 4 * i,
            update_ratios=(ratio,) * 3, weight_norms=lambda i: (1.0 + norm * i,) * 3,
        )  # fmt: skip
        return recorded(process, loss_train=np.linspace(2.5, end, 80))

    def asked(made: Run) -> tuple[bool, bool]:
        process = made.recording.processes[0]
        traces = traces_of(process)
        lasting = lasting_updates(made, process, traces)
        return lasting is not None, large_updates(made, traces) is not None

    assert asked(run(0.5, 2.5)) == (False, True)
    assert asked(run(0.09, 2.5, norm=1.0)) == (True, False)
    assert asked(run(0.5, 0.1)) == (False, False)
