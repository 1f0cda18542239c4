"""Who owns the parameters, and what becomes of those without an owner."""

from dataclasses import replace

from traindx.analysis.recordings.owners import (
    are_all_seen_still,
    cite_idle,
    gradient_count,
    has_wide_input,
    is_idle,
    is_meant_idle,
    is_stale,
    is_stuck_at_zero,
    keeps_moving,
    last_gradient,
    moves_weights,
    starts_at_chance,
    still_moves,
    strangers_learn,
)
from traindx.analysis.recordings.traces import traces_of
from traindx.examples import sampled, watched, weights
from traindx.model.recording import LossInput, Optimizer, Parameter


def test_a_parameter_without_an_owner_is_idle():
    idle, held = traces_of(watched(*weights("a", optimizer=None), *weights("b")))
    assert is_idle(idle) and not is_idle(held)
    assert gradient_count(idle) == 6 and last_gradient(idle) == 0.1
    assert is_meant_idle([idle], [held])
    assert not is_meant_idle([held], [idle])


def test_strangers_are_tensors_of_no_model():
    process = watched(*weights("a"), names=("a", "stranger 0"), grads=(0.1, 0.3))
    assert strangers_learn(process)
    assert not strangers_learn(watched(*weights("a")))


def test_an_optimizer_of_as_many_strangers_is_stale():
    model = watched(*weights("a", "b")).models[0]
    assert is_stale(model, [Optimizer(1, size=2, strangers=2)])
    assert not is_stale(model, [Optimizer(1, size=1, strangers=1)])


def test_the_first_loss_tells_whether_training_starts_at_chance():
    given = (LossInput("cross_entropy", classes=10),)
    assert starts_at_chance(sampled(3, loss=2.3, losses=given), 0)
    assert not starts_at_chance(sampled(3, loss=0.3, losses=given), 0)


def test_zero_weights_that_get_no_gradient_are_stuck():
    (zero,) = traces_of(watched(*weights("0.weight"), grads=(0.0,), weight_norms=(0.0,)))
    assert is_stuck_at_zero(zero)
    assert not is_stuck_at_zero(replace(zero, parameter=replace(zero.parameter, name="mask")))


def test_a_bottleneck_has_a_wide_input():
    wide = (Parameter("a", (2, 24), optimizer=0), Parameter("b", (14, 2), optimizer=0))
    traces = traces_of(watched(*wide))
    assert has_wide_input(traces[1], traces)
    assert not has_wide_input(traces[0], traces)
    assert keeps_moving(traces[1])


def test_weights_that_stand_still():
    still = watched(*weights("a"), still=("a",))
    assert are_all_seen_still(still)
    assert not are_all_seen_still(watched(*weights("a")))
    assert still_moves(traces_of(watched(*weights("a")))[0])
    assert not still_moves(traces_of(still)[0])


def test_idle_parameters_are_cited_with_a_gradient():
    process = watched(*weights("a", optimizer=None), *weights("b"))
    idle = traces_of(process)[:1]
    held, still = cite_idle(process, process.models[0], idle)
    assert held.says == "no optimizer holds a of Net" and "gradient of 0.1" in still.says


def test_an_optimizer_moves_its_weights():
    process = watched(*weights("a"))
    assert moves_weights(process, process.optimizers[0])
    assert not moves_weights(watched(*weights("a"), still=("a",)), process.optimizers[0])
