"""The first step that gave NaN or infinity."""

from dataclasses import replace
from math import inf, nan

from traindx.analysis.recordings.broken_steps import (
    are_gradients_finite,
    broke_before,
    broke_ever,
    cite_batch,
    cite_growth,
    first_nan_gradient,
    gives_nan,
    masked_softmax,
    suspect_operation,
)
from traindx.examples import make_run
from traindx.model.recording import (
    Activation,
    Counts,
    LossInput,
    NonFinite,
    Place,
    Process,
    Sample,
    Summary,
)

SAMPLE = Sample(1, 5, loss=2.4, grad_norms=(nan,), weight_norms=(3.0,))


def test_nan_gradients_of_a_finite_step():
    assert first_nan_gradient(Process(samples=(SAMPLE,))) is SAMPLE
    assert first_nan_gradient(Process(samples=(replace(SAMPLE, weight_norms=(nan,)),))) is None
    scaled = Process(samples=(SAMPLE,), counts=Counts(9, scaled=4))
    assert first_nan_gradient(scaled) is None


def test_what_comes_of_a_broken_batch_is_nan():
    broken = replace(SAMPLE, losses=(LossInput("mse_loss", "", Summary(nonfinite=3)),))
    assert gives_nan(Process(), broken)
    assert gives_nan(Process(nonfinite=(NonFinite(1, 5),)), SAMPLE)
    assert not gives_nan(Process(), SAMPLE)


def test_what_broke_before_explains_the_rest():
    assert broke_before(Process(nonfinite=(NonFinite(1, 4),)), SAMPLE)
    assert broke_before(Process(), replace(SAMPLE, weight_norms=(inf,)))
    assert not broke_before(Process(samples=(SAMPLE,)), SAMPLE)
    assert broke_ever(Process(samples=(SAMPLE,)))
    assert not broke_ever(Process(samples=(replace(SAMPLE, grad_norms=(0.1, None)),)))


def test_weights_that_grew_tenfold_are_cited():
    first, last = (replace(SAMPLE, step=s, weight_norms=(n,)) for s, n in ((0, 5.0), (9, 4e12)))
    (cited,) = cite_growth(Process(), [first, last])
    assert cited.says.startswith("the norm of all weights grew")
    assert cite_growth(Process(), [first, first]) == ()


def test_rows_of_a_softmax_are_nan_where_all_is_masked():
    masked = Activation("attn", "softmax", (4, 8, 8), masked_rows=2)
    assert masked_softmax(replace(SAMPLE, activations=(masked,))) is masked
    assert masked_softmax(replace(SAMPLE, activations=(replace(masked, masked_rows=32),))) is None


def test_gradients_that_a_scaler_would_skip():
    assert not are_gradients_finite(Process(samples=(SAMPLE,)))
    assert are_gradients_finite(Process(samples=(replace(SAMPLE, grad_norms=(0.1, None)),)))


def test_the_batch_and_the_operation_that_are_to_blame():
    record = NonFinite(1, 5, inputs=(Summary("x", (4, 2), "float32", nonfinite=1),), kept="a/b")
    said = [e.says for e in cite_batch(Process(), record)]
    assert (
        said[0] == "the batch contains NaN or infinity" and said[-1] == "the batch is kept in a/b"
    )
    text = "import torch\ndrift = torch.sqrt(sum((p - q).pow(2).sum() for p, q in pairs))\n"
    run, place = make_run(sources={"train.py": text}), Place("train.py", 5, "", "loss.backward()")
    assert suspect_operation(run, place) is not None
    assert suspect_operation(run, None) is None
