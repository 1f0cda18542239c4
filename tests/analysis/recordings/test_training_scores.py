"""What the loss of the late training batches says of the accuracy on them."""

import pytest

from traindx.analysis.recordings.training_scores import (
    late_class_loss,
    least_accuracy,
    ruled_out_accuracy,
)
from traindx.examples import LossInput, Summary, recorded, sampled
from traindx.model.run import Run

EVEN = {"0": 9, "1": 8, "2": 9, "3": 8}


def trained(loss: float, own: float = 0.99) -> Run:
    given = LossInput(
        "cross_entropy", prediction=Summary("prediction", (32, 4)), classes=4, labels=EVEN
    )
    process = sampled(8, loss=loss, losses=(given,), batch=(Summary("0", (32, 8)),))
    return recorded(process, accuracy_train=[own] * 8)


def test_the_late_loss_over_class_labels():
    run = trained(0.05)
    found = late_class_loss(run, run.recording.processes[0])
    assert found is not None and found[2] == pytest.approx(0.05)
    negative = trained(-0.05)
    assert late_class_loss(negative, negative.recording.processes[0]) is None


def test_a_mistake_costs_ln_2_at_least():
    assert least_accuracy(0.0) == 1.0
    assert least_accuracy(0.693147) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(("own", "is_ruled_out"), [(0.4, True), (0.99, False)])
def test_an_accuracy_that_its_own_loss_rules_out(own: float, is_ruled_out: bool):
    run = trained(0.05, own)
    found = late_class_loss(run, run.recording.processes[0])
    assert found is not None
    assert (ruled_out_accuracy(run, found[1], found[2]) is not None) is is_ruled_out
