"""Two players: the verdicts on real and generated examples, and their learning rates."""

from dataclasses import replace

import pytest

from traindx.analysis.recordings.adversaries import late_pairs, times_faster
from traindx.examples import sampled
from traindx.model.recording import LossInput, Optimizer, Process, Summary


def verdict(target: float, spread: float) -> LossInput:
    given = Summary(shape=(32, 1), mean=0.2, std=spread)
    return LossInput("bce_with_logits", "addmm", given, Summary(mean=target, std=0.0, distinct=1))


def game(steps: int = 100) -> Process:
    both, fooled = (verdict(1.0, 4.0), verdict(0.0, 0.1)), (verdict(1.0, 0.1),)
    return sampled(
        16,
        step=lambda i: steps * (i // 2),
        optimizer=lambda i: i % 2,
        losses=lambda i: fooled if i % 2 else both,
    )


def test_the_verdicts_of_the_judge_are_paired():
    pairs = late_pairs(game())
    assert pairs and all(p.ratio == pytest.approx(0.025) for p in pairs)


def test_a_short_game_has_no_late_pairs():
    assert late_pairs(game(steps=10)) == []


def test_rates_are_compared_between_optimizers_of_one_kind():
    rates = (0.03, 0.001)
    players = tuple(Optimizer(i, i, "Adam", groups=({"lr": rate},)) for i, rate in enumerate(rates))
    process = replace(game(), optimizers=players)
    assert times_faster(process, 0) == pytest.approx(30.0)
    other = replace(process, optimizers=(players[0], replace(players[1], type="SGD")))
    assert times_faster(other, 0) == 0.0
