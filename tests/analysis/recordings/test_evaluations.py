"""Evaluations of a recorded run: their data, their mode and their inputs."""

from dataclasses import replace

import pytest

from traindx.analysis.recordings.evaluations import (
    cite_eval_steps,
    evaluation_inputs,
    is_live,
    is_named_evaluation,
    is_over_idle_loader,
    is_steady,
    longest_in_eval_mode,
    spread_factor,
    training_inputs,
)
from traindx.examples import watched, weights, with_evaluation
from traindx.model.recording import Evaluation, Place, Sample, Summary

GIVEN = Summary("0", (64, 8), "float32", mean=0.0, std=1.0)


def test_inputs_are_compared_where_they_enter_the_same_module():
    made = watched(*weights("0.weight"), entered=0, inputs=(GIVEN,))
    process = with_evaluation(made, inputs=(replace(GIVEN, std=9.0),), entered=0)
    assert training_inputs(process.samples).keys() == evaluation_inputs(process).keys()
    alone = with_evaluation(made, inputs=(GIVEN,), entered=0, forwards=1)
    assert evaluation_inputs(alone) == {}


def test_a_spread_is_outside_by_a_factor():
    usual = [replace(GIVEN, std=s) for s in (1.0, 1.1, 1.2, 1.3, 1.5)]
    assert is_steady(usual) and not is_steady([*usual, replace(GIVEN, std=9.0)])
    assert spread_factor(usual, replace(GIVEN, std=15.0)) == pytest.approx(10.0)


def test_live_layers_mind_the_mode():
    live = Evaluation(1, is_training=True, live=("drop",))
    assert is_live(live)
    assert not is_live(replace(live, live=())) and not is_live(replace(live, has_grad=True))


def test_an_evaluation_without_a_loader_is_known_by_its_function():
    def process(function: str, *steps: int):
        record = Evaluation(1, is_training=True, live=("drop",), place=Place("a.py", 1, function))
        return replace(watched(), evaluations=tuple(replace(record, step=s) for s in steps))

    named = process("validate", 10, 20)
    assert is_named_evaluation(named, named.evaluations[0])
    for other in (process("validate", 10), process("rollout", 10, 20), process("mc_val", 10, 20)):
        assert not is_named_evaluation(other, other.evaluations[0])


def test_an_idle_loader_is_never_trained_on():
    process = with_evaluation(watched(*weights("0.weight")))
    assert is_over_idle_loader(process, process.evaluations[0])
    assert not is_over_idle_loader(process, replace(process.evaluations[0], loader=0))


def test_the_longest_stretch_in_evaluation_mode():
    modes = (True, False, True, False, False, True)
    samples = [
        Sample(i, i, is_training=m, evaluating=() if m else ("drop",)) for i, m in enumerate(modes)
    ]
    assert [s.step for s in longest_in_eval_mode(samples)] == [3, 4]


def test_steps_in_evaluation_mode_are_cited_with_the_evaluation_before():
    process = with_evaluation(watched(*weights("0.weight")))
    said = [e.says for e in cite_eval_steps(process, list(process.samples), process.evaluations)]
    assert said[0].startswith("6 sampled steps in a row") and "10 forward passes" in said[1]
