"""The scale of a gradient scaler."""

from traindx.analysis.metrics.loss_scales import (
    collapse_start,
    halved_to,
    is_searching,
    skips_at_the_floor,
    skips_to_the_end,
)
from traindx.examples import decay, logged, make_run
from traindx.model.run import Event


def test_skips_go_on_to_the_end():
    def skip(scale: float, step: float) -> Event:
        return Event("skipped-step", f"reducing loss scale to {scale}", "a", "line 1", step=step)

    run = make_run({"loss/train": decay(100)})
    assert skips_to_the_end(run, [skip(0.5, 99.0)])
    assert not skips_to_the_end(run, [skip(0.5, 9.0)])
    assert not skips_to_the_end(run, [skip(1024.0, 99.0)])


def attempt(scale: float) -> Event:
    text = f"OVERFLOW! Attempted loss scale: {scale}, reducing to {scale / 2}"
    return Event("skipped-step", text, "a", "line 1")


def test_a_scale_collapses_from_where_it_only_fell():
    scale = logged(loss_scale=[65536.0, 65536.0, *(65536.0 * 0.5**i for i in range(20))])
    assert collapse_start(scale.series["loss_scale"]) == 2
    assert collapse_start(logged(loss_scale=[1024.0] * 9).series["loss_scale"]) is None


def test_skips_in_a_row_halve_the_scale():
    assert halved_to([attempt(2.0**i) for i in range(6, 1, -1)]) == 2.0
    assert halved_to([attempt(4.0)] * 6) is None


def test_what_overflows_at_the_floor_overflows_for_good():
    scale = logged(loss_scale=[1.0] * 8).series["loss_scale"]
    assert len(skips_at_the_floor(scale, [attempt(1.0)] * 8)) == 5
    assert skips_at_the_floor(scale, [attempt(65536.0)] * 8) == []


def test_a_scaler_that_looks_for_its_scale():
    assert is_searching(logged(loss_scale=[65536.0, 32768.0]))
    assert not is_searching(logged(loss_scale=[1.0, 1.0]))
