"""Similarities within a batch."""

from dataclasses import replace

from traindx.analysis.recordings.contrast import are_alike, late_similarities, point_apart
from traindx.analysis.recordings.observations import terms_of
from traindx.examples import sampled
from traindx.model.recording import Activation, LossInput, Process, Sample, Summary

SQUARE = Summary(shape=(64, 64), low=-4.17, high=-4.15)
GIVEN = LossInput("cross_entropy", "div", SQUARE, classes=64, labels={str(i): 1 for i in range(64)})
SAMPLE = Sample(1, 0, loss=4.159, losses=(GIVEN,), grad_norms=(1e-4, 1e-4))


def test_similarities_that_say_the_same_of_all_are_alike():
    assert are_alike(SAMPLE, GIVEN)
    assert not are_alike(SAMPLE, replace(GIVEN, prediction=replace(SQUARE, high=2.0)))
    assert not are_alike(replace(SAMPLE, grad_norms=(1e-9, 1e-9, 1.0)), GIVEN)


def test_vectors_of_length_one_may_still_point_apart():
    vectors = Activation("projector", "input of mm", (64, 16), mean=0.0, std=0.25)
    assert point_apart(replace(SAMPLE, activations=(vectors,)), GIVEN)
    assert not point_apart(replace(SAMPLE, activations=(replace(vectors, std=0.02),)), GIVEN)


def test_a_mask_may_take_no_more_than_the_diagonal():
    def late(masked: int) -> int:
        given = replace(GIVEN, prediction=replace(SQUARE, nonfinite=masked))
        process: Process = sampled(5, losses=(given,))
        return len(late_similarities(terms_of(process, "cross_entropy")[0]))

    assert late(64) > 0
    assert late(900) == 0
