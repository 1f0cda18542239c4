"""Gradients that fade from the last layers to the first."""

import numpy as np
import pytest

from traindx.analysis.recordings.fading import (
    chains_of,
    faded,
    fading_chains,
    fading_norms,
    first_over_last,
    in_order_of_depth,
    is_saturating,
    middle,
    rank_correlation,
    usual_norm,
)
from traindx.analysis.recordings.traces import traces_of
from traindx.examples import make_run, watched, weights

FALL = [10.0 ** (i - 8) for i in range(8)]
NAMES = [f"net.{i}.weight" for i in range(8)]


def test_gradients_fade_along_a_chain_if_updates_do():
    fading = traces_of(watched(*weights(*NAMES), grads=FALL, update_ratios=tuple(FALL)))
    assert faded(fading) == pytest.approx(1e-6)
    adam = traces_of(watched(*weights(*NAMES), grads=FALL, update_ratios=(1e-3,) * 8))
    assert faded(adam) is None
    assert faded(adam, keeps_up=True) == pytest.approx(1e-6)
    assert faded(fading[:3]) is None


def test_a_sequential_is_a_chain():
    modules = {"net": "Sequential", **{f"net.{i}a": "Sigmoid" for i in range(8)}}
    process = watched(*weights(*NAMES), modules=modules)
    chains = chains_of(process.models[0], traces_of(process))
    assert list(chains) == ["net"] and len(chains["net"]) == 8
    assert is_saturating(process.models[0], "net", chains["net"])
    assert not is_saturating(watched(*weights(*NAMES)).models[0], "net", chains["net"])


def test_layers_come_in_the_order_of_their_numbers():
    names = ("layers/b.10.weight/grad_norm", "layers/a.2.weight/grad_norm", "layers/1.bias/x")
    series = list(make_run({n: [1.0, 3.0] for n in names}).series.values())
    assert [s.name for s in in_order_of_depth(series)] == [names[1], names[0]]
    assert usual_norm(series[0]) == 2.0


def test_middles_and_ends():
    assert middle((None, 1.0, float("nan"), 3.0)) == 2.0
    assert middle((None,)) == 0.0
    assert first_over_last(np.array(FALL)) == pytest.approx(1e-6)
    assert rank_correlation(np.array(FALL)) == pytest.approx(1.0)


def test_logged_norms_fade_with_depth():
    norms = {f"layers/net.{i}.weight/grad_norm": [n] * 5 for i, n in enumerate(FALL)}
    found = fading_norms(make_run(norms))
    assert found is not None and found[0] == pytest.approx(1e-6)
    assert fading_norms(make_run({n: [1.0] * 5 for n in norms})) is None


def test_a_model_fades_as_a_whole_or_in_a_part():
    process = watched(*weights(*NAMES), grads=FALL, update_ratios=tuple(FALL))
    ((ratio, chain, keeps_up),) = fading_chains(process)
    assert (ratio, len(chain), keeps_up) == (pytest.approx(1e-6), 8, False)
    assert list(fading_chains(watched(*weights(*NAMES)))) == []
