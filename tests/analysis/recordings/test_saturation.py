"""Hidden tanh and sigmoid layers at their flat ends."""

from dataclasses import replace

import pytest

from traindx.analysis.recordings.saturation import has_gates, hidden_stacks, open_share
from traindx.examples import sampled
from traindx.model.recording import Activation, Model, Parameter, Process, Submodule


def process(loss: float, kind: str = "Linear") -> Process:
    layers = tuple(
        Activation(name, "tanh", (64, 8), saturated=share)
        for name, share in (("fc1", 0.6), ("fc2", 0.9), ("fc3", 0.99))
    )
    parameters = tuple(Parameter(f"fc{i}.weight", (8, 8)) for i in (1, 2, 3))
    model = Model(1, 0, "Net", parameters=parameters, modules=(Submodule("body", kind),))
    made = sampled(8, loss=lambda i: loss if i else 2.3, activations=layers)
    return replace(made, models=(model,))


def test_hidden_layers_come_most_closed_first_and_without_the_output():
    (_, seen), *rest = hidden_stacks(process(2.3))
    assert not rest
    assert [layer.name for layer in seen[0][1]] == ["fc2", "fc1"]


def test_a_loss_that_falls_has_no_stacks():
    assert list(hidden_stacks(process(0.1))) == []


def test_two_closed_layers_multiply():
    layers = [Activation(n, "tanh", saturated=s) for n, s in (("a", 0.9), ("b", 0.5), ("c", 0.5))]
    assert open_share(layers) == pytest.approx(0.05)


def test_gates_are_known_by_their_module():
    assert has_gates(process(2.3, "LSTM"))
    assert not has_gates(process(2.3))
