"""What is tried for how long, on a made-up program whose curves are formulas."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from traindx.experiments.changes import Change, Intervention, Rerun
from traindx.experiments.probes.census import FeatureSpread, OptimizerFacts, ProgramFacts
from traindx.experiments.probes.conclusions import findings_of, leading
from traindx.experiments.probes.halving import NO_TIME, Halving, Yardsticks
from traindx.experiments.probes.measurements import Measurement, Points
from traindx.experiments.probes.offers import Offer, offers_for
from traindx.experiments.probes.rerun_pool import Job, RerunPool, cores_for
from traindx.model.probes import Effect, Probing

STEPS, ROWS = 400, 16
RUN_S = 10.0

Level = Callable[[float, Sequence[str], int], float]


class MadeUp:
    """Stands for a pool: reruns take no time but what the clock is told."""

    def __init__(self, level: Level, left_s: float = 1000.0) -> None:
        self.level = level
        self.left_s = left_s
        self.workers = 1
        self.pace = 1.0
        self.made: list[Job] = []

    def has_time_for(self, expected_s: float) -> bool:
        return self.left_s > expected_s

    def see(self, jobs: Sequence[Job], keep_s: float = 0.0) -> dict[Job, Measurement]:
        found = {}
        for job in jobs:
            if self.has_time_for(job.expected_s + keep_s):
                self.left_s -= job.expected_s
                self.made.append(job)
                found[job] = measurement(self.level, job.change, job.seed, job.steps)
        return found


def measurement(level: Level, change: Change, seed: int, steps: int | None) -> Measurement:
    random = np.random.default_rng(seed * 1000 + len(change.says))
    last = min(steps or STEPS, STEPS)
    at = np.arange(40, last + 1, 40)
    said = change.says.split("; ")
    values = [level(n / STEPS, said, seed) + 0.003 * random.normal() for n in at]
    points = Points("accuracy/val", tuple(map(float, at * ROWS)), tuple(values), 2000)
    rerun = Rerun(change, seed, Path(), 0, "", 1.0, RUN_S)
    return Measurement(rerun, {points.name: points}, last, last * ROWS)


def halving(level: Level, facts: ProgramFacts, left_s: float = 1000.0) -> tuple[Halving, MadeUp]:
    offers = offers_for(facts, [], ["python", "train.py"], is_improving=False)
    pool = MadeUp(level, left_s)
    control = measurement(level, Change(), 0, None)
    yardsticks = Yardsticks("accuracy/val", "", {"accuracy/val": 0.1})
    made = Halving(pool, facts, list(offers.tried), control, yardsticks)  # type: ignore[arg-type]
    return made, pool


def facts(**more: object) -> ProgramFacts:
    known = {
        "optimizers": (OptimizerFacts("SGD", 0.01, 0.01, 0.01, 0.01, steps=STEPS, numbers=100),),
        "rows": ROWS * 1,
        "loaders": ({"batch_size": 32, "sampler": "RandomSampler", "size": 2000},),
        "loss_kind": "classes",
        **more,
    }
    return ProgramFacts(**known)  # type: ignore[arg-type]


def healthy(part: float, said: Sequence[str], seed: int) -> float:
    return 0.1 + 0.85 * (1 - np.exp(-8 * part))


def too_slow(part: float, said: Sequence[str], seed: int) -> float:
    rate = {"learning rate × 3": 1.5, "learning rate × 10": 5.0, "learning rate × 100": 2.0}
    return 0.1 + 0.85 * (1 - np.exp(-rate.get(said[0], 0.5) * part))


def _shifted(by: int) -> Level:
    """A healthy program whose seeds differ a little."""
    return lambda part, said, seed: healthy(part, said, seed) + 0.004 * ((seed + by) % 3)


def test_the_rate_that_helps_most_is_repeated_with_fresh_seeds_and_helps() -> None:
    made, pool = halving(too_slow, facts())
    made.run_all()
    probes = made.probes()
    lead = leading(probes, {o.change.says: o.rank for o in made.offers})
    assert lead is not None
    assert (lead.change, lead.cause, lead.effect) == (
        "learning rate × 10",
        "lr-too-low",
        Effect.HELPS,
    )
    assert lead.seeds == 2
    assert {j.seed for j in pool.made if j.key == "rate × 10"} == {0, 1, 2}


def test_it_goes_on_in_a_direction_that_helps() -> None:
    made, pool = halving(too_slow, facts())
    made.run_all()
    assert "rate × 100" in {j.key for j in pool.made}
    assert "rate ÷ 100" not in {j.key for j in pool.made}


def test_nothing_is_invented_on_a_run_that_does_as_well_as_it_can() -> None:
    for seed in range(5):
        made, _ = halving(_shifted(seed), facts(dropout=0.1))
        made.run_all()
        assert [p.change for p in made.probes() if p.helps] == []


def test_what_is_specific_leads_where_it_helps_as_much() -> None:
    def clipped(part: float, said: Sequence[str], seed: int) -> float:
        is_mended = said[0] in ("no gradient clipping", "learning rate × 10", "learning rate × 100")
        return 0.1 + 0.85 * (1 - np.exp(-(6.0 if is_mended else 0.3) * part))

    made, _ = halving(clipped, facts(clip_calls=400, clipped=400, clip_limit=0.01))
    made.run_all()
    probes = made.probes()
    lead = leading(probes, {o.change.says: o.rank for o in made.offers})
    assert lead is not None
    assert lead.cause == "gradient-clipping-too-tight"
    findings = findings_of(Probing("accuracy/val", tuple(probes)), lead)
    assert [f.shows for f in findings if f.shows] == ["gradient-clipping-too-tight"]
    assert any("lr-too-low" in f.suggests for f in findings)


def test_too_little_time_leaves_changes_out_and_says_what_would_do() -> None:
    made, pool = halving(too_slow, facts(), left_s=65.0)
    made.run_all()
    assert (NO_TIME) in {why for _, why in made.left_out}
    assert made.enough_s > 65.0
    assert pool.left_s >= 0


def test_a_first_look_is_shorter_where_time_is_short() -> None:
    made, pool = halving(too_slow, facts(), left_s=80.0)
    made.run_all()
    first = [j.steps for j in pool.made if j.seed == 0 and j.key == "rate × 3"]
    assert first[0] is not None
    assert first[0] < STEPS


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"dropout": 0.5}, "dropout"),
        ({"smoothing": 0.2}, "smoothing"),
        ({"half_weights": True}, "master"),
        ({"trained_in_eval": 3}, "modes"),
        ({"inputs": FeatureSpread(200.0, 1000.0, 0.01, 10.0, 8)}, "inputs"),
        ({"loss_kind": "values", "targets": FeatureSpread(5000.0, 300.0, 300.0, 300.0)}, "targets"),
        ({"layers": ({"type": "Linear", "ratio": 0.001, "mean": 0.0},)}, "initialisation"),
        ({"loaders": ({"sampler": "SequentialSampler", "size": 2000},)}, "shuffle"),
    ],
)
def test_only_what_is_there_is_tried(more: dict[str, object], key: str) -> None:
    def keys(found: ProgramFacts) -> set[str]:
        offers: Sequence[Offer] = offers_for(found, [], [], is_improving=None).tried
        return {o.key for o in offers}

    assert key in keys(facts(**more))
    assert key not in keys(facts())


def test_a_scale_is_also_mended_with_the_rate_that_it_then_allows() -> None:
    far = FeatureSpread(200.0, 1000.0, 0.01, 10.0, 8)
    low = (OptimizerFacts("SGD", 1e-5, 1e-5, 1e-5, 1e-5, steps=STEPS, numbers=100),)
    usual = offers_for(facts(inputs=far), [], [], is_improving=None).tried
    fitted = offers_for(facts(inputs=far, optimizers=low), [], [], is_improving=None).tried
    assert "inputs usual" not in {o.key for o in usual}
    made = next(o for o in fitted if o.key == "inputs usual")
    assert [i.name for i in made.change.interventions] == ["normalise-inputs", "learning-rate"]
    assert made.cause == "unnormalised-inputs"


def test_what_does_not_apply_is_said() -> None:
    left_out = dict(offers_for(facts(), [], [], is_improving=False).left_out)
    assert left_out["no dropout"] == "there is none"
    assert left_out["training 3 times as long"] == "the metric has levelled off"


def test_reruns_share_the_cores_only_where_each_takes_one_thread() -> None:
    assert cores_for({}) == 1
    assert cores_for({"OMP_NUM_THREADS": "10000"}) == 1
    assert cores_for({"OMP_NUM_THREADS": "1"}) >= 1


class Slow:
    """Stands for a workshop whose reruns take a while."""

    def __init__(self) -> None:
        self.is_abandoned = False

    def rerun(self, change: Change, seed: int, limits: object, hang: object = None) -> Rerun:
        if change.says == "interrupt":
            raise KeyboardInterrupt
        return Rerun(change, seed, Path("/nowhere"), 0, "", 0.0, 1.0)

    def abandon(self) -> None:
        self.is_abandoned = True


def test_an_interrupt_ends_all_reruns() -> None:
    workshop = Slow()
    pool = RerunPool(workshop, 100.0, workers=2)
    with pytest.raises(KeyboardInterrupt):
        pool.see([Job(Change("interrupt", (Intervention("x"),)), 0)])
    assert workshop.is_abandoned


def test_no_rerun_begins_that_would_end_too_late() -> None:
    pool = RerunPool(Slow(), 10.0, clock=time.monotonic)
    assert pool.see([Job(Change("late"), 0, None, 50.0)]) == {}
