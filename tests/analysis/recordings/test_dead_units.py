"""Rectified layers whose units give zero for every example."""

from traindx.analysis.recordings.dead_units import (
    began_alive,
    effect_of_dead_layer,
    relu_layers,
    samples_of_large_batches,
)
from traindx.examples import sampled
from traindx.model.recording import Activation, LossInput, Process


def process(dead: float, rows: int = 64, spread: float = 0.5) -> Process:
    layer = Activation("fc1", "relu", (rows, 128), dead=dead)
    return sampled(8, activations=(layer,), losses=(LossInput("mse_loss", spread=spread),))


def test_layers_are_named_with_their_samples():
    assert {name: len(seen) for name, seen in relu_layers(process(0.9).samples).items()} == {
        "fc1": 8
    }


def test_small_batches_say_nothing():
    assert samples_of_large_batches(process(1.0, rows=4)) == ()
    assert len(samples_of_large_batches(process(1.0))) >= 3


def test_units_that_fire_at_the_first_step_began_alive():
    assert began_alive(process(0.1))
    assert not began_alive(process(0.9))


def test_a_constant_output_is_the_effect_of_a_dead_layer():
    dead = process(1.0, spread=0.0)
    assert "same for every input" in effect_of_dead_layer(dead, dead.samples)
    assert effect_of_dead_layer(process(1.0), process(1.0).samples) == ""
