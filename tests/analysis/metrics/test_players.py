"""The losses of two networks that train against each other."""

import numpy as np

from traindx.analysis.metrics.players import is_even_game, player_loss, was_in_balance
from traindx.examples import flat, make_run


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
