from __future__ import annotations

import numpy as np

from traindx.examples import make_run
from traindx.model.run import Config, Origin, Series, Setting, as_number


def series(steps: list[float], values: list[float] | None = None) -> Series:
    numbers = np.arange(len(steps), dtype=float) if values is None else np.array(values)
    return Series("loss/train", numbers, np.array(steps), Origin("a.log", "loss"))


def test_a_resumed_run_replaces_what_it_does_again() -> None:
    resumed = series([0, 1, 2, 3, 2, 3, 4])
    assert resumed.restarts() == [4]
    assert resumed.timeline().steps.tolist() == [0, 1, 2, 3, 4]
    assert resumed.timeline().values.tolist() == [0, 1, 4, 5, 6]


def test_two_resumes_leave_each_step_once() -> None:
    assert series([0, 1, 2, 1, 2, 3, 0, 1]).timeline().steps.tolist() == [0, 1]


def test_several_points_of_one_step_are_kept() -> None:
    assert len(series([0, 0, 1, 1]).timeline()) == 4


def test_nan_is_data() -> None:
    broken = series([0, 1, 2], [1.0, np.nan, np.inf])
    assert len(broken) == 3
    assert broken.finite().values.tolist() == [1.0]


def test_places_lead_back_to_the_artifact() -> None:
    run = make_run({"loss/train": [3.0, 2.0]}, epochs=[0, 1])
    loss = run.series["loss/train"]
    assert loss.where(1) == "line 2"
    assert loss.when(1) == "step 1 (epoch 1)"


def test_needs() -> None:
    run = make_run({"loss/train/box": [1.0], "layers/fc.1/grad_norm": [1.0]}, config={"lr": 1})
    assert run.has("loss")
    assert run.has("layers/*/grad_norm")
    assert run.has("source|config")
    assert not run.has("source")
    assert not run.has("loss/val*")


def test_adversarial_and_policy_losses_are_no_objective() -> None:
    assert make_run({"loss/train/d": [1.0], "loss/train/g": [1.0]}).objective() is None
    assert make_run({"loss/train": [1.0], "reward/train": [1.0]}).objective() is None
    assert make_run({"loss/train": [1.0]}).objective() is not None


def test_a_sum_with_a_kl_term_is_an_objective_unless_it_rises() -> None:
    falling, rising = np.linspace(30.0, 20.0, 20), np.linspace(20.0, 30.0, 20)
    assert make_run({"loss/train": falling, "kl/train": rising}).objective() is not None
    assert make_run({"loss/train": rising, "kl/train": rising}).objective() is None


def test_an_error_stands_for_the_loss_where_there_is_none() -> None:
    run = make_run({"mse/train": [3.0, 2.0], "r2/train": [0.1, 0.2]})
    assert run.has("loss")
    found = run.main_loss()
    assert found is not None
    assert found.name == "mse/train"
    told = make_run({"mse/train": [3.0, 2.0], "loss/train": [1.0, 0.5]}).main_loss()
    assert told is not None
    assert told.name == "loss/train"


def test_learning_rates_are_told_from_their_bounds() -> None:
    run = make_run(config={"optim.muon_lr": "1e-2", "min_lr": 1e-5, "lr_scheduler": "cosine"})
    assert [s.key for s in run.config.learning_rates()] == ["optim.muon_lr"]


def test_settings_are_found_by_their_last_part() -> None:
    config = Config((Setting("model.num_classes", 10, "c.yaml"), Setting("lr", "0.1", "c.yaml")))
    assert config.number("num_classes") == 10
    assert config.number("absent", "lr") == 0.1
    assert config.find("model") is None


def test_numbers_in_settings() -> None:
    assert as_number("1e-2") == 0.01
    assert as_number(True) is None
    assert as_number("cosine") is None
