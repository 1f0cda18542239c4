"""Activations that grow over the steps, or with the depth."""

from traindx.analysis.recordings.layer_growth import grown_layer, grown_with_depth
from traindx.examples import sampled
from traindx.model.recording import Activation, Process


def over_steps(*spreads: float) -> Process:
    layers = [(Activation("block.3", "input of addmm", std=s),) for s in spreads]
    return sampled(len(spreads), activations=lambda i: layers[i])


def with_depth(*spreads: float) -> Process:
    layers = tuple(Activation(f"l{i}", "relu", std=s) for i, s in enumerate(spreads))
    return sampled(1, activations=layers)


def test_a_layer_grows_a_thousandfold():
    found = grown_layer(over_steps(1.0, 40.0, 3e3, 4e5, 6e7))
    assert found is not None and found[0][0][1].name == "block.3"
    assert grown_layer(over_steps(1.0, 4.0, 9.0, 10.0, 11.0)) is None


def test_a_fresh_model_amplifies_with_depth():
    found = grown_with_depth(with_depth(1e9, 1e6, 1e4, 30.0, 1.0))
    assert found is not None and [a.name for a in found] == ["l4", "l0"]
    assert grown_with_depth(with_depth(12.0, 8.0, 5.0, 1.0)) is None
