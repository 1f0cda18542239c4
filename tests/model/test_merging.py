"""One run from many parts: nothing vanishes, nothing is counted twice, order does not matter."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx.model.merging import merge_runs, resolve
from traindx.model.run import Artifact, Config, Origin, Run, Series, Setting
from traindx.model.step_counters import unwrap, unwrap_steps


def telling(
    values: Sequence[float],
    steps: Sequence[float] | None = None,
    *,
    name: str = "loss/train",
    artifact: str = "train.log",
    column: str = "loss",
    axis: str = "step",
    epochs: Sequence[float] | None = None,
) -> Series:
    count = len(values)
    return Series(
        name,
        np.asarray(values, dtype=np.float64),
        np.arange(count, dtype=np.float64) if steps is None else np.asarray(steps, np.float64),
        Origin(artifact, column),
        axis,
        np.empty(0) if epochs is None else np.asarray(epochs, np.float64),
        np.arange(1, count + 1, dtype=np.int64),
    )


def noise(count: int, seed: int = 0, level: float = 1.0) -> list[float]:
    rng = np.random.default_rng(seed)
    return list(level * (1.0 + 0.1 * rng.standard_normal(count)))


def tellings(series: dict[str, Series]) -> dict[str, tuple[list[float], list[float], str]]:
    return {
        n: (s.steps.tolist(), np.nan_to_num(s.values, nan=-1.0).tolist(), s.origin.artifact)
        for n, s in series.items()
    }


values = st.lists(
    st.one_of(st.floats(-1e6, 1e6), st.just(float("nan")), st.just(float("inf"))),
    min_size=1,
    max_size=20,
)
metrics = st.lists(
    st.tuples(
        st.sampled_from(["loss/train", "loss/val", "lr", "other/x"]),
        st.sampled_from(["a.log", "b.csv"]),
        st.sampled_from(["step", "epoch", "point"]),
        values,
    ),
    min_size=1,
    max_size=6,
)


@given(metrics)
def test_no_metric_is_lost(drawn: list[tuple[str, str, str, list[float]]]) -> None:
    told = [telling(v, name=n, artifact=a, axis=x) for n, a, x, v in drawn]
    resolved = resolve(told)
    assert {n.split("@")[0] for n in resolved} == {s.name for s in told}
    assert all(n == s.name and len(s) for n, s in resolved.items())


@given(metrics, st.randoms(use_true_random=False))
def test_order_does_not_matter(
    drawn: list[tuple[str, str, str, list[float]]], shuffler: random.Random
) -> None:
    told = [telling(v, name=n, artifact=a, axis=x) for n, a, x, v in drawn]
    mixed = list(told)
    shuffler.shuffle(mixed)
    assert tellings(resolve(told)) == tellings(resolve(mixed))


@given(metrics)
def test_resolving_again_changes_nothing(drawn: list[tuple[str, str, str, list[float]]]) -> None:
    once = resolve(telling(v, name=n, artifact=a, axis=x) for n, a, x, v in drawn)
    assert tellings(resolve(once.values())) == tellings(once)


@given(st.integers(5, 60), st.integers(1, 5), st.integers(2, 6))
def test_a_retold_subset_is_counted_once(count: int, every: int, digits: int) -> None:
    full = noise(count)
    kept = range(0, count, every)
    part = telling(
        [round(full[i], digits) for i in kept], list(kept), artifact="b.csv", column="train_loss"
    )
    resolved = resolve([part, telling(full)])
    assert list(resolved) == ["loss/train"]
    assert len(resolved["loss/train"]) == count


def test_of_two_equal_tellings_the_one_with_more_digits_stays() -> None:
    full = noise(30)
    rounded = [round(v, 2) for v in full]
    resolved = resolve([telling(rounded, artifact="a.log"), telling(full, artifact="b.csv")])
    assert len(resolved) == 1
    assert resolved["loss/train"].origin.artifact == "b.csv"


@pytest.mark.parametrize("factor", [1.001, 1.01, 0.98])
def test_close_metrics_do_not_vanish(factor: float) -> None:
    full = noise(50)
    resolved = resolve([telling(full), telling([v * factor for v in full], column="loss_ema")])
    assert set(resolved) == {"loss/train", "loss/train@2"}


def test_few_values_that_happen_to_occur_do_not_vanish() -> None:
    dense = telling(noise(5000))
    sparse = telling([1.02, 0.97], axis="point", artifact="b.log")
    assert len(resolve([dense, sparse])) == 2


def test_zeros_and_ones_are_near_to_everything_and_fold_into_nothing() -> None:
    assert len(resolve([telling([0.4, 0.3, 0.2, 0.7]), telling([0.0, 0.0, 0.0, 1.0])])) == 2


def test_an_epoch_mean_stays_beside_the_steps() -> None:
    steps = noise(40)
    means = [float(np.mean(steps[i : i + 10])) for i in range(0, 40, 10)]
    resolved = resolve([telling(means, [9, 19, 29, 39], column="train_loss_epoch"), telling(steps)])
    assert len(resolved["loss/train"]) == 40
    assert len(resolved["loss/train@2"]) == 4


def test_of_an_evaluation_the_whole_set_counts_not_each_batch() -> None:
    batches = telling(noise(100), name="loss/val", column="val_loss_step")
    whole = telling(noise(5, seed=1), name="loss/val", column="val_loss_epoch")
    resolved = resolve([batches, whole])
    assert resolved["loss/val"].origin.name == "val_loss_epoch"
    assert len(resolved["loss/val@2"]) == 100


def test_a_best_line_repeats_values_without_steps() -> None:
    validation = telling([0.91231, 0.81177, 0.84512, 0.71903, 0.69417], name="loss/val")
    best = telling([0.9123, 0.8118, 0.7190, 0.6942], name="loss/val", axis="point", artifact="b")
    assert len(resolve([validation, best])) == 1


def test_counting_from_one_or_from_zero_is_the_same_story() -> None:
    full = noise(12)
    one = telling(full, range(1, 13), axis="epoch", artifact="a.log")
    zero = telling([round(v, 4) for v in full], range(12), axis="epoch", artifact="b.csv")
    assert len(resolve([one, zero])) == 1


@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")])
def test_a_resumed_run_continues_in_further_files(names: tuple[str, str, str]) -> None:
    parts = [
        telling(noise(100, seed=i), range(100 * i, 100 * i + 100), artifact=f"{names[i]}.log")
        for i in range(3)
    ]
    resolved = resolve(parts)
    assert list(resolved) == ["loss/train"]
    assert resolved["loss/train"].steps.tolist() == list(range(300))
    joined = resolved["loss/train"]
    assert all(f"{n}.log" in joined.origin.artifact for n in names)
    assert not len(joined.places), "a line number would lead to the wrong file"


def test_what_a_resumed_run_did_again_replaces_what_it_did_before() -> None:
    first = telling(noise(100), range(100), artifact="a.log")
    second = telling(noise(100, seed=1), range(90, 190), artifact="b.log")
    joined = resolve([second, first])["loss/train"]
    assert len(joined) == 200
    assert joined.timeline().steps.tolist() == list(range(190))


def test_another_run_does_not_continue_this_one() -> None:
    short = telling(noise(100), range(0, 1000, 10), artifact="a.csv")
    long = telling(noise(500, seed=1), range(10, 5010, 10), artifact="b.csv")
    assert len(resolve([short, long])) == 2


def test_steps_that_count_within_an_epoch_count_on() -> None:
    steps = np.tile(np.arange(0, 100, 10), 3).astype(float)
    epochs = np.repeat([1.0, 2.0, 3.0], 10)
    assert unwrap(steps, epochs).tolist() == list(range(0, 300, 10))
    assert unwrap(steps, np.empty(0)).tolist() == list(range(0, 300, 10))


def test_one_point_per_epoch_at_the_same_step_counts_on() -> None:
    assert unwrap(np.full(4, 50.0), np.arange(4.0)).tolist() == [50.0, 100.0, 150.0, 200.0]


def test_a_run_restarted_from_scratch_stays_as_it_is() -> None:
    steps = np.concatenate([np.arange(50.0), np.arange(80.0)])
    epochs = np.floor(steps / 10)
    series = telling(noise(130), steps.tolist(), epochs=epochs.tolist())
    assert unwrap_steps(series) is series
    timeline = resolve([series])["loss/train"].timeline()
    assert timeline.steps.tolist() == list(range(80))
    assert timeline.places.tolist() == list(range(51, 131))


def test_a_run_resumed_from_a_checkpoint_stays_as_it_is() -> None:
    steps = np.concatenate([np.arange(0, 100.0), np.arange(60, 150.0)])
    assert unwrap(steps, np.floor(steps / 20)) is steps


def test_a_counter_that_restarts_while_epochs_go_on_counts_on() -> None:
    steps = np.concatenate([np.arange(0.0, 50), np.arange(0.0, 30)])
    epochs = np.concatenate([np.arange(50) // 10, 5 + np.arange(30) // 10]).astype(float)
    assert unwrap(steps, epochs).tolist() == list(range(80))


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=30))
def test_unwrapping_keeps_every_point(steps: list[float]) -> None:
    array = np.asarray(steps, dtype=np.float64)
    assert len(unwrap(array, np.empty(0))) == len(array)


def test_merging_keeps_everything_once() -> None:
    setting = Setting("lr", 0.1, "c.yaml", "line 1")
    part = Run(
        series={"loss/train": telling(noise(10))},
        config=Config((setting,)),
        artifacts=(Artifact("train.log", "console"),),
        symptoms=("loss is flat",),
    )
    merged = merge_runs([part, part], "both")
    assert len(merged.series["loss/train"]) == 10
    assert merged.config.settings == (setting,)
    assert merged.symptoms == ("loss is flat",)
    assert merged.name == "both"


def test_a_test_set_evaluated_throughout_is_the_validation() -> None:
    train = telling(noise(10))
    test = telling(noise(10, seed=1), name="loss/test", column="test_loss")
    once = telling([0.5], name="accuracy/test")
    merged = merge_runs([Run(series={s.name: s for s in (train, test, once)})], "run")
    assert set(merged.series) == {"loss/train", "loss/val", "accuracy/test"}
    assert merged.series["loss/val"].origin.name == "test_loss"
    validation = telling(noise(4), name="loss/val")
    merged = merge_runs([Run(series={s.name: s for s in (train, test, validation)})], "run")
    assert set(merged.series) == {"loss/train", "loss/test", "loss/val"}


def test_many_points_told_twice_are_folded() -> None:
    full = telling(noise(200_000))
    rounded = telling([round(v, 4) for v in full.values], artifact="b.csv")
    assert len(resolve([full, rounded])) == 1


@pytest.mark.parametrize("name", ["held_out", "val", "valid", "test"])
def test_a_series_that_only_names_its_data_is_of_the_metric_beside_it(name: str) -> None:
    parts = [telling(noise(9)), telling(noise(9, 1), name=f"other/{name}")]
    run = merge_runs([Run(series={s.name: s for s in parts})], "run")
    assert set(run.series) == {"loss/train", "loss/val"}


@pytest.mark.parametrize("beside", ["accuracy/train", "loss/val"])
def test_a_name_of_data_beside_two_metrics_stays_unknown(beside: str) -> None:
    names = ("loss/train", beside, "other/val")
    parts = [telling(noise(9, i), name=n) for i, n in enumerate(names)]
    run = merge_runs([Run(series={s.name: s for s in parts})], "run")
    assert "other/val" in run.series


def test_a_name_of_data_far_from_the_metric_stays_unknown() -> None:
    parts = [telling(noise(9)), telling([5000.0] * 9, name="other/test")]
    run = merge_runs([Run(series={s.name: s for s in parts})], "run")
    assert [n for n in run.series if n.startswith("loss/")] == ["loss/train"]
