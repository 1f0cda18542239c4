"""The batches of a recorded run, and what its first layer is given."""

from dataclasses import replace
from math import sqrt

import pytest

from traindx.analysis.recordings.input_batches import (
    breaking_rate,
    first_layer_input,
    has_constant_inputs,
    input_change,
    is_input_table,
    mean_square,
    position_ratio,
    raw_inputs,
    raw_table,
    repeats_one_example,
    scale_of,
    takes_raw_inputs,
)
from traindx.examples import recorded, watched
from traindx.model.recording import Activation, NonFinite, Parameter, Process, Sample, Summary

TABLE = Summary("0", (32, 8), "float32", "cpu", -1.0, 1.0, 0.0, 1.0)
LAYER = Activation("fc1", "input of addmm", (32, 8), mean=0.6, std=0.8)


def test_a_table_has_examples_and_features():
    assert is_input_table(TABLE)
    assert not is_input_table(replace(TABLE, shape=(32, 1)))
    assert not is_input_table(replace(TABLE, dtype="int64"))


def test_constant_inputs_have_no_spread():
    assert has_constant_inputs(Sample(1, 0, batch=(replace(TABLE, std=0.0),)))
    assert not has_constant_inputs(Sample(1, 0, batch=(TABLE,)))


def test_the_gradients_of_one_row_for_all_have_its_length():
    sample = Sample(1, 0, batch=(TABLE,), activations=(LAYER,), names=("fc1.weight", "fc1.bias"))
    assert repeats_one_example(replace(sample, grad_norms=(0.3 * sqrt(8.0), 0.3)))
    assert not repeats_one_example(replace(sample, grad_norms=(0.2, 0.3)))


def test_the_first_layer_is_given_the_batch():
    assert first_layer_input(Sample(1, 0, batch=(TABLE,), activations=(LAYER,))) is LAYER
    inner = replace(LAYER, shape=(32, 16))
    assert first_layer_input(Sample(1, 0, batch=(TABLE,), activations=(inner,))) is None


def test_inputs_change_where_all_that_follow_are_unlike():
    shifted = replace(LAYER, mean=9.0)
    assert input_change([*[LAYER] * 6, shifted, shifted]) == 6
    assert input_change([*[LAYER] * 6, shifted, LAYER]) is None


def test_raw_inputs_are_in_the_hundreds():
    raw = replace(TABLE, mean=1500.0, std=900.0)
    assert scale_of(raw) == 1500.0
    assert raw_table(Sample(1, 0, batch=(raw,))) is raw
    assert raw_table(Sample(1, 0, batch=(TABLE,))) is None


def test_a_norm_before_the_first_layer_scales_the_inputs():
    weight = Parameter("fc1.weight", (16, 8), optimizer=0)
    assert takes_raw_inputs(watched(weight, modules={"": "Net", "fc1": "Linear"}))
    assert not takes_raw_inputs(watched(weight, modules={"": "Net", "fc1": "BatchNorm1d"}))


def test_positions_are_small_beside_raw_inputs():
    layer = replace(LAYER, mean=0.0, std=70.0)
    shapes = {"pos": (1, 8, 16), "fc1.weight": (16, 8)}
    sample = Sample(
        1, 0, names=("pos", "fc1.weight"), weight_norms=(1.0, 4.0), batch=(TABLE,),
        activations=(layer,),
    )  # fmt: skip
    ratio = position_ratio(sample, shapes, "pos")
    assert ratio == pytest.approx(70.0 * sqrt(128.0))
    assert position_ratio(replace(sample, activations=(LAYER,)), shapes, "pos") is None


def fed(mean: float, std: float, kind: str = "Linear") -> Process:
    given = Summary("0", (32, 8), "float32", "cpu", mean - std, mean + std, mean, std)
    layer = Activation("fc1", "input of addmm", (32, 8), mean=max(abs(mean), std), std=1.0)
    parameter = Parameter("fc1.weight", (16, 8), optimizer=0)
    modules = {"": "Net", "fc1": kind}
    return watched(parameter, modules=modules, count=4, batch=(given,), activations=(layer,))


def test_a_table_that_goes_into_the_first_layer_as_it_is():
    found = raw_inputs(fed(1500.0, 900.0))
    assert found is not None and (len(found[0]), found[1].mean) == (4, 1500.0)
    assert raw_inputs(fed(0.1, 1.0)) is None


def test_a_rate_that_only_suits_normalised_inputs():
    def broken(rate: float, mean: float = 1500.0) -> bool:
        process = replace(fed(mean, 900.0), nonfinite=(NonFinite(9, 4),))
        run = recorded(process, lr=[rate] * 4)
        return breaking_rate(run, process, process.samples[0].batch[0]) is not None

    assert broken(0.01)
    assert not broken(1.0) and not broken(1e-8)
    assert mean_square(Summary(mean=3.0, std=4.0)) == 25.0
