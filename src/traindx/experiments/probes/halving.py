"""Which change is tried for how long: all once, the promising ones with fresh seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from traindx.experiments.changes import AS_IT_IS
from traindx.experiments.probes.census import ProgramFacts
from traindx.experiments.probes.decisions import (
    Comparison,
    effect_of,
    is_promising,
    merit,
    pooled_noise,
)
from traindx.experiments.probes.measurements import FITS, Measurement
from traindx.experiments.probes.offers import Offer, rate_offer
from traindx.experiments.probes.rerun_pool import Job, RerunPool
from traindx.model.probes import Effect, Probe

SCREEN_SHARE = 0.55  # of the time that is left, for the first look at all changes
LEAST_PART = 0.3  # of the run: a shorter look misleads
MOST_FINALISTS = 4
FRESH = 2  # seeds that a promising change is repeated with
NO_TIME = "no time was left for it"
CONTROL = ""
SLACK = 1.02  # of the examples of the run as it is, that a change may have seen


@dataclass(frozen=True, slots=True, eq=False)
class Yardsticks:
    """The metrics that reruns are compared by, and what a constant prediction reaches."""

    main: str
    other: str = ""
    constants: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Halving:
    """The reruns of one probing, from the first look to the last seed."""

    pool: RerunPool
    facts: ProgramFacts
    offers: list[Offer]
    control: Measurement
    yardsticks: Yardsticks
    seeds: int = 1 + FRESH
    announce: Callable[[str], None] = lambda _: None
    seen: dict[tuple[str, int], Measurement] = field(default_factory=dict)
    screened: dict[str, tuple[Measurement, int | None]] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    enough_s: float = 0.0

    def run_all(self) -> None:
        """Look at all changes, then at the promising ones again."""
        self.seen[CONTROL, 0] = self.control
        jobs = self._screening()
        self._screen(jobs)
        self._screen(self._further())
        self._repeat()

    # time

    @property
    def steps(self) -> int | None:
        """Return where reruns stop: where the run as it is was stopped, if it was."""
        return self.control.steps if self.control.rerun.stopped else None

    def expected_s(self, part: float = 1.0) -> float:
        """Return how long a part of the run takes, with its set-up."""
        set_up = self.control.rerun.first_step_s or 0.0
        return set_up + part * max(0.0, self.control.rerun.duration_s - set_up)

    def _job(self, offer: Offer, seed: int, part: float) -> Job:
        steps = self.steps
        if part < 1.0 or steps is not None:
            steps = max(1, round(part * offer.length * self.control.steps))
        return Job(offer.change, seed, steps, self.expected_s(part * offer.cost), offer.key)

    # the first look

    def _screening(self) -> list[Job]:
        """Return the first look at each change: as long as there is time for, likely ones first."""
        part = self._part(SCREEN_SHARE * self.pool.left_s * self.pool.workers / self.pool.pace)
        jobs = []
        for offer in self.offers:
            is_whole = offer.needs_end or (offer.needs_held_out and self._is_late(part))
            jobs.append(self._job(offer, 0, 1.0 if is_whole else part))
        self.enough_s = self._enough()
        self.announce(self._intention(jobs, part))
        return jobs

    def _part(self, room: float) -> float:
        """Return how much of the run the first look can take."""
        fixed = sum(self.expected_s(o.cost) for o in self.offers if o.needs_end)
        others = [o for o in self.offers if not o.needs_end]
        set_up = self.expected_s(0.0)
        body = sum(self.expected_s(o.cost) - set_up for o in others)
        if body <= 0:
            return 1.0
        part = (room - fixed - set_up * len(others)) / body
        return min(1.0, max(LEAST_PART, part))

    def _is_late(self, part: float) -> bool:
        """Tell whether the metric is first known later than a first look goes."""
        points = self.control.metrics.get(self.yardsticks.main)
        rows = points.rows if points is not None else ()
        return not rows or rows[0] > part * self.control.rows

    def _enough(self) -> float:
        whole = sum(self.expected_s(o.cost) for o in self.offers)
        again = (MOST_FINALISTS + 1) * FRESH * self.expected_s()
        return self.expected_s() + (whole + again) * self.pool.pace / self.pool.workers

    def _intention(self, jobs: Sequence[Job], part: float) -> str:
        each = self.expected_s(part) * self.pool.pace
        told = f"{part:.0%} of the run" if part < 1.0 else "the whole run"
        beside = f", {self.pool.workers} beside each other" if self.pool.workers > 1 else ""
        left = f"within {self.pool.left_s:.0f} s (--max-time)"
        return (
            f"{len(jobs)} changes, one at a time, about {each:.0f} s each ({told}){beside}; then "
            f"the promising ones with {self.seeds - 1} other seeds; {left}"
        )

    def _screen(self, jobs: Sequence[Job]) -> None:
        keep_s = 2 * FRESH * self.expected_s()  # for the best of them, and the run as it is
        for job, made in self.pool.see(jobs, keep_s).items():
            is_whole = job.steps == self.steps or (self.steps is None and job.steps is None)
            self.screened[job.key] = (made, job.steps)
            if is_whole:
                self.seen[job.key, 0] = made
        for job in jobs:
            if job.key not in self.screened:
                self.left_out.append((job.change.says, NO_TIME))

    def _further(self) -> list[Job]:
        """Return the next rates in a direction that helps the more the further one goes."""
        jobs = []
        for first, second in (("rate × 3", "rate × 10"), ("rate ÷ 3", "rate ÷ 10")):
            offer = self._offer(second)
            near, far = self.first_look(first), self.first_look(second)
            if offer is None or offer.next_up <= 0 or near is None or far is None:
                continue
            if is_promising(far) and merit(far) > merit(near) and self.facts.main is not None:
                made = rate_offer(offer.next_up, self.facts.main)
                self.offers.append(made)
                jobs.append(self._job(made, 0, 1.0))
        return jobs

    def _offer(self, key: str) -> Offer | None:
        return next((o for o in self.offers if o.key == key), None)

    # comparing

    def first_look(self, key: str) -> Comparison | None:
        """Compare the first look at a change with the run as it was by then."""
        found = self.screened.get(key)
        offer = self._offer(key)
        if found is None or offer is None or found[0].has_failed:
            return None
        for name in dict.fromkeys((self.yardsticks.main, self.yardsticks.other, FITS)):
            if name == FITS and offer.needs_held_out:
                return None
            made = self._compared(offer, {0: (self.control, found[0])}, name)
            if made is not None:
                return made
        return None

    def compared(self, offer: Offer, name: str) -> Comparison | None:
        """Compare a change over the seeds that both it and the run as it is were repeated with."""
        seeds = [s for (k, s) in self.seen if k == offer.key and (CONTROL, s) in self.seen]
        fresh = [s for s in seeds if s]
        chosen = fresh if len(fresh) > 1 else seeds
        pairs = {s: (self.seen[CONTROL, s], self.seen[offer.key, s]) for s in chosen}
        return self._compared(offer, pairs, name)

    def _compared(
        self, offer: Offer, pairs: dict[int, tuple[Measurement, Measurement]], name: str
    ) -> Comparison | None:
        before: dict[int, float] = {}
        after: dict[int, float] = {}
        count, wiggle, is_higher = 0, 0.0, False
        for seed, (control, changed) in pairs.items():
            old, new = control.metrics.get(name), changed.metrics.get(name)
            if old is None or new is None:
                continue
            if offer.key != "longer":
                rows = min(control.rows, changed.rows) * SLACK
                old, new = old.up_to(rows), new.up_to(rows)
            if not old.values or not new.values:
                continue
            before[seed], after[seed] = old.level, new.level
            count, is_higher = old.count, old.is_higher_better
            wiggle = max(wiggle, old.wiggle)
        if not before:
            return None
        constant = self.yardsticks.constants.get(name)
        return Comparison(before, after, is_higher, constant, count, wiggle)

    # fresh seeds

    def finalists(self) -> list[Offer]:
        """Return the changes that are worth other seeds, best first, one of each kind."""
        ranked = []
        for offer in self.offers:
            looks = [self.first_look(offer.key)]
            if self.yardsticks.other and not offer.needs_score and (offer.key, 0) in self.seen:
                looks.append(self.compared(offer, self.yardsticks.other))
            best = max((merit(c) for c in looks if c is not None and is_promising(c)), default=None)
            if best is not None:
                ranked.append((best, offer))
        ranked.sort(key=lambda pair: -pair[0])
        kept: dict[str, Offer] = {}
        for _, offer in ranked:
            kept.setdefault(_family(offer), offer)
        return list(kept.values())[:MOST_FINALISTS]

    def _repeat(self) -> None:
        """Repeat the promising changes, and the run as it is, with seeds that chose nothing."""
        finalists = self.finalists()
        seeds = list(range(1, self.seeds))
        while finalists and len(finalists) > 1 and not self._fits(finalists, seeds):
            finalists = finalists[:-1]
        for seed in seeds:
            control = Job(AS_IT_IS, seed, self.steps, self.expected_s(), CONTROL)
            jobs = [control, *(self._job(o, seed, 1.0) for o in finalists)]
            for job, made in self.pool.see(jobs).items():
                if not made.has_failed:
                    self.seen[job.key, seed] = made
            if not finalists:
                return  # one other seed of the run as it is tells its noise

    def _fits(self, finalists: Sequence[Offer], seeds: Sequence[int]) -> bool:
        each = self.expected_s() + sum(self.expected_s(o.cost) for o in finalists)
        return each * len(seeds) * self.pool.pace / self.pool.workers <= self.pool.left_s

    # what came of it

    def probes(self) -> list[Probe]:
        """Return what each change came to."""
        finalists = {o.key for o in self.offers if len(self._seeds_of(o)) > 1}
        repeated = [o for o in self.offers if o.key in finalists]
        found = [self._probe(o, repeated) for o in self.offers]
        return [p for p in found if p is not None]

    def _seeds_of(self, offer: Offer) -> list[int]:
        return [s for (k, s) in self.seen if k == offer.key]

    def _probe(self, offer: Offer, repeated: Sequence[Offer]) -> Probe | None:
        failed = self.screened.get(offer.key)
        if failed is not None and failed[0].has_failed:
            self.left_out.append((offer.change.says, "with it the program failed"))
            return None
        made = [self._judged(offer, name, repeated) for name in self._names(offer)]
        known = [p for p in made if p is not None]
        if not known:
            return None
        main = known[0]
        if main.effect is Effect.HELPS or len(known) == 1 or offer.needs_score:
            return main
        beside = known[1]
        is_better = beside.effect is Effect.HELPS and main.effect is not Effect.HURTS
        return beside if is_better else main

    def _names(self, offer: Offer) -> list[str]:
        if offer.key in self.screened and (offer.key, 0) not in self.seen:
            return [self.yardsticks.main]
        return [n for n in (self.yardsticks.main, self.yardsticks.other) if n]

    def _noise_between_seeds(self, name: str) -> float:
        """Return how far the run as it is differs between seeds, where nothing was repeated."""
        points = [m.metrics.get(name) for (key, _), m in self.seen.items() if key == CONTROL]
        levels = [p.level for p in points if p is not None and math.isfinite(p.level)]
        return statistics.stdev(levels) if len(levels) > 1 else 0.0

    def _judged(self, offer: Offer, name: str, repeated: Sequence[Offer]) -> Probe | None:
        is_short = (offer.key, 0) not in self.seen and not self._seeds_of(offer)
        found = self.first_look(offer.key) if is_short else self.compared(offer, name)
        if found is None:
            return None
        others = [c for o in repeated if (c := self.compared(o, name)) is not None]
        is_beside = name == self.yardsticks.other
        pooled = pooled_noise(others) or self._noise_between_seeds(name)
        effect, noise = effect_of(found, pooled, beside_score=is_beside)
        says = ""
        if name == FITS and offer.needs_held_out:
            effect, says = Effect.OPEN, "no held-out metric tells whether it generalises better"
        elif effect is Effect.OPEN:
            says = self._why_open(offer)
        steps = self.screened[offer.key][0].steps if offer.key in self.screened else 0
        return Probe(
            offer.change.says, offer.cause, name, found.mean_before, found.mean_after, noise,
            effect, len(found.seeds), steps, says, offer.change.remedy, offer.change.patch,
        )  # fmt: skip

    def _why_open(self, offer: Offer) -> str:
        """Say why a change that looked well with one seed was not repeated."""
        repeated = [o for o in self.offers if len(self._seeds_of(o)) > 1]
        same = next((o for o in repeated if o is not offer and _family(o) == _family(offer)), None)
        if same is not None:
            return f"not repeated: {same.change.says} went further"
        return "promising with one seed; no time was left for others"


def _family(offer: Offer) -> str:
    return offer.key.partition(" ")[0]
