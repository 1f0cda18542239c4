"""The losses of two networks that train against each other."""

import numpy as np

from traindx.analysis.metrics.players import (
    GUESS,
    covered_modes,
    fooled_judge,
    is_even_game,
    player_loss,
    was_in_balance,
    winning_judge,
)
from traindx.examples import flat, make_run
from traindx.model.run import Run


def test_a_player_is_known_by_its_names():
    run = make_run({"loss/train/disc": [1.0, np.nan, 0.9]})
    found = player_loss(run, ("d", "disc"))
    assert found is not None and len(found) == 2
    assert player_loss(run, ("g", "gen")) is None


def test_a_game_is_even_until_one_side_has_won():
    def game(judge: float) -> bool:
        return is_even_game(
            make_run({"loss/train/d": flat(14, judge), "loss/train/g": flat(14, 1)})
        )

    assert game(1.2)
    assert not game(0.001) and not game(25.0)
    assert not is_even_game(make_run({"loss/train": flat(14, 1.0)}))


def test_a_log_may_begin_late_with_a_judge_that_errs():
    judge = make_run({"d": [1.7, 0.0, 0.0]}, steps=[44, 45, 46], axis="epoch").series["d"]
    assert was_in_balance(judge, 1)
    assert not was_in_balance(make_run({"d": [1.7, 0.0, 0.0]}, axis="epoch").series["d"], 1)


def game(judge: object, maker: object) -> Run:
    return make_run({"loss/train/d": judge, "loss/train/g": maker})


def test_a_judge_that_stands_still_is_fooled():
    found = fooled_judge(game(np.linspace(3.7, 28.0, 14), np.geomspace(0.05, 1e-6, 14)))
    assert found is not None and found.since == 7 and found.judged > 3.0 * GUESS
    assert fooled_judge(game(np.linspace(14.0, 0.7, 14), np.linspace(0.0, 1.6, 14))) is None
    assert fooled_judge(game(np.linspace(9.0, 12.0, 14), np.linspace(-0.1, -3.0, 14))) is None


def test_a_judge_that_is_always_right_wins():
    found = winning_judge(game(np.geomspace(0.7, 1e-5, 100), np.linspace(0.8, 12.0, 100)))
    assert found is not None and found.is_sure and found.made > found.began
    few = winning_judge(game(np.geomspace(0.14, 1e-6, 14), np.linspace(2.6, 21.0, 14)))
    assert few is not None and not few.is_sure
    assert winning_judge(game(flat(100, 0.6), flat(100, 1.2))) is None


def test_modes_that_are_covered_no_more():
    def counted(modes: list[float]) -> Run:
        losses = {"loss/train/d": flat(14, 1.2), "loss/train/g": flat(14, 0.9)}
        return make_run({"other/modes": modes, **losses})

    found = covered_modes(counted([8, 8, 7, 4, 3, 3, 3, 3, 3, 3]))
    assert found is not None and found[2:] == (8.0, 3.0)
    assert covered_modes(counted([8.0] * 10)) is None
