"""Parameters that are frozen where others are trained."""

from dataclasses import replace

from traindx.analysis.recordings.frozen_layers import (
    frozen_at_random,
    frozen_head,
    is_kept_frozen,
    loads_only_late,
    lone_trained_bias,
    never_thawed,
)
from traindx.analysis.recordings.traces import traces_of
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Loaded, Model, Parameter, Process, Sample


def test_the_head_alone_is_frozen():
    body = weights("0.weight", "1.weight")
    odd = watched(*body, *weights("head.weight", is_trainable=False)).models[0]
    found = frozen_head(odd)
    assert found is not None and found.name == "head.weight"
    assert frozen_head(watched(*body, *weights("head.weight")).models[0]) is None


def test_one_bias_alone_is_trained():
    frozen = weights("0.weight", "1.weight", is_trainable=False)
    bias = Parameter("1.bias", (16,), "float32", True, 0)
    assert lone_trained_bias(watched(*frozen, bias).models[0]) is bias
    assert lone_trained_bias(watched(*weights("0.weight"), bias).models[0]) is None


def test_a_layer_is_kept_frozen_if_it_never_moved():
    names = (*weights("0.weight", is_trainable=False), *weights("1.weight"))
    process = watched(
        *names, grads=(None, 0.1), still=("0.weight",), modules={"0": "Linear", "1": "Linear"}
    )
    first, second = traces_of(process)
    assert is_kept_frozen(process, process.models[0], first)
    assert not is_kept_frozen(process, process.models[0], second)


def test_weights_that_are_loaded_at_the_end_were_not_there_before():
    process = watched(*weights("0.weight"))
    late, early = (replace(process, loads=(Loaded(9, step, "Net", 8),)) for step in (400, 0))
    assert loads_only_late(recorded(late))
    assert not loads_only_late(recorded(early))
    assert not loads_only_late(recorded(process))


def test_half_of_a_model_is_frozen_at_random():
    names = (*weights("0.weight", is_trainable=False), *weights("1.weight"))
    process = watched(
        *names,
        grads=(None, 0.1),
        still=("0.weight",),
        modules={"0": "Linear", "1": "Linear"},
        step=lambda i: 100 * i,
    )
    ((_, frozen, own, owner),) = frozen_at_random(process, is_written=False)
    assert ([t.name for t in frozen], len(own), owner) == (["0.weight"], 2, 0)
    assert not list(frozen_at_random(watched(*weights("0.weight")), is_written=False))


def test_a_model_that_is_never_switched_on_beside_one_that_is():
    first, second = (
        Model(i, i, name, 0, tuple(weights("0.weight", optimizer=1, is_trainable=False)))
        for i, name in enumerate(("GlobalD", "PatchD"))
    )
    samples = tuple(
        Sample(9, i, 1, names=("0.weight",) * 2, grad_norms=(0.5, None), weight_norms=(1.0, 1.0))
        for i in range(4)
    )
    process = Process(models=(first, second), samples=samples)
    assert [(a.type, b.type) for a, b in never_thawed(process)] == [("PatchD", "GlobalD")]
    both = tuple(replace(s, grad_norms=(0.5, 0.5)) for s in samples)
    assert not list(never_thawed(replace(process, samples=both)))
