"""The model before its first step."""

from dataclasses import replace

import pytest

from traindx.analysis.recordings.initialisation import (
    has_outgrown,
    initial_scales,
    is_amplified,
    is_far_above_guess,
    is_near_overflow,
    keeps_spread,
    layer_inputs,
    scale_fault,
)
from traindx.examples import sampled, watched, weights
from traindx.model.recording import Activation, LossInput, Sample


def layers(*spreads: float) -> tuple[Activation, ...]:
    return tuple(Activation(f"{i}", "input of addmm", std=s) for i, s in enumerate(spreads))


def test_inputs_come_in_the_order_of_the_model():
    process = watched(*weights("0.weight", "1.weight", "2.weight"))
    sample = Sample(1, 0, activations=layers(1.0, 2.0, 3.0)[::-1])
    assert [a.std for a in layer_inputs(process.models[0], sample)] == [1.0, 2.0, 3.0]
    assert layer_inputs(process.models[0], Sample(1, 0, activations=layers(1.0)[1:])) == []


def test_a_spread_that_doubles_in_every_layer_is_amplified():
    assert is_amplified(list(layers(0.7, 2.4, 8.1, 33.0)))
    assert not is_amplified(list(layers(1.0, 1.4, 2.0, 2.8)))


def test_the_first_loss_is_held_against_a_guess():
    given = (LossInput("cross_entropy", classes=10),)
    assert is_far_above_guess(Sample(1, 0, loss=9.0, losses=given))
    assert not is_far_above_guess(Sample(1, 0, loss=2.3, losses=given))
    assert not is_far_above_guess(Sample(1, 0, loss=9.0))


def test_training_may_outgrow_a_bad_start():
    given = (LossInput("cross_entropy", classes=10),)
    learnt = sampled(6, loss=0.3, losses=given, activations=layers(1.0, 1.5))
    assert has_outgrown(learnt)
    assert not has_outgrown(sampled(6, loss=2.3, losses=given, activations=layers(1.0, 1.5)))


def test_weights_of_usual_size_keep_a_spread():
    process = watched(*weights("0.weight"), weight_norms=(4.0,))
    assert keeps_spread(process, process.samples[0])
    large = watched(*weights("0.weight"), weight_norms=(40.0,))
    assert not keeps_spread(large, large.samples[0])


def test_scales_that_shrink_every_input_are_a_fault():
    names = weights("0.weight", "2.weight")
    process = watched(*names, weight_norms=(0.002, 0.002), activations=layers(1e-3, 1.0))
    scales = initial_scales(process, process.samples[0])
    assert scales.gains == pytest.approx((5e-4, 5e-4))
    assert "no layer scales" in scale_fault(scales, process.samples[0])
    assert scale_fault(replace(scales, gains=(1.0, 1.0)), process.samples[0]) == ""


def test_squares_of_huge_activations_overflow():
    assert is_near_overflow(sampled(1, activations=(Activation("0", "relu", high=1e19),)))
    assert not is_near_overflow(sampled(1, activations=(Activation("0", "relu", high=1e3),)))
