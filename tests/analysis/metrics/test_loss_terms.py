"""The terms of a composite loss."""

import pytest

from traindx.analysis.metrics.loss_terms import (
    is_outweighed,
    is_task_term,
    is_total,
    is_vae,
    negligible_kl,
    term_levels,
)
from traindx.examples import decay, flat, make_run


def test_a_regulariser_is_no_task():
    run = make_run({"loss/train/box": flat(30, 1.0), "loss/train/l2_reg": flat(30, 1.0)})
    box, penalty = run.series.values()
    assert is_task_term(box) and not is_task_term(penalty)


def test_levels_are_those_of_start_and_end():
    run = make_run({"loss/train/box": decay(100, 5.0, 0.5, noise=0.0)})
    start, end = term_levels(run.series["loss/train/box"])
    assert start == pytest.approx(5.0, rel=0.1) and end == pytest.approx(0.5, rel=0.1)


def test_an_autoencoder_is_known_by_its_words():
    assert is_vae(make_run({"kl/train": [1.0], "loss/train/recon": [1.0]}))
    assert is_vae(make_run(sources={"a.py": "def reparameterize(mu): ..."}))
    assert not is_vae(make_run({"kl/train": [1.0], "reward/train": [1.0]}))


def test_a_negligible_kl_depends_on_the_scale_of_the_loss():
    assert negligible_kl(make_run({"loss/train/recon": [90.0]})) == 0.02
    assert negligible_kl(make_run({"loss/train/recon": [0.5]})) == pytest.approx(1e-3)


def test_a_small_term_is_outweighed():
    port = make_run({"loss/train/port": flat(100, 1.0, noise=0.0)}).series["loss/train/port"]
    assert is_outweighed(port, 1e9, 1e6)
    assert not is_outweighed(port, 1e3, 1e2)


def test_totals_are_told_by_name() -> None:
    assert is_total("loss/train") and is_total("loss/train@3")
    assert not is_total("loss/train/box") and not is_total("loss/val")
