"""Whether the machinery of training works."""

from traindx.analysis.recordings.observations import terms_of
from traindx.analysis.recordings.soundness import is_trained_soundly
from traindx.examples import watched, weights
from traindx.model.recording import LossInput, Summary


def judge(*, ratio: float = 2e-3, grad: float = 0.1, std: float = 1.0) -> bool:
    process = watched(
        *weights("0.weight", "2.weight"),
        grads=(grad, 0.1),
        losses=(LossInput("cross_entropy", classes=4),),
        update_ratios=(ratio, ratio),
        batch=(Summary("0", (32, 8), "float32", mean=0.0, std=std),),
    )
    return is_trained_soundly(process, terms_of(process, "cross_entropy")[0])


def test_usual_inputs_gradients_and_updates_are_sound():
    assert judge()


def test_each_of_them_may_be_at_fault():
    assert not judge(ratio=1e-6)
    assert not judge(ratio=0.4)
    assert not judge(grad=1e-7)
    assert not judge(std=80.0)
