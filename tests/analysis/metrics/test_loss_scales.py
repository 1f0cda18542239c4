"""The scale of a gradient scaler."""

from traindx.analysis.metrics.loss_scales import skips_to_the_end
from traindx.examples import decay, make_run
from traindx.model.run import Event


def test_skips_go_on_to_the_end():
    def skip(scale: float, step: float) -> Event:
        return Event("skipped-step", f"reducing loss scale to {scale}", "a", "line 1", step=step)

    run = make_run({"loss/train": decay(100)})
    assert skips_to_the_end(run, [skip(0.5, 99.0)])
    assert not skips_to_the_end(run, [skip(0.5, 9.0)])
    assert not skips_to_the_end(run, [skip(1024.0, 99.0)])
