"""`probe`: from a command to what helps it, what does not, and where it stands, within limits."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from traindx.capture.launcher.recording_folder import make_folder, shown
from traindx.diagnosis.engine import diagnose, with_probes
from traindx.errors import CannotRerun, TraindxError
from traindx.experiments.probes.census import ProgramFacts, read_census
from traindx.experiments.probes.conclusions import (
    findings_of,
    floors_in,
    leading,
    remarks_on_floors,
    summary_of_probes,
)
from traindx.experiments.probes.floor_reruns import floor_reruns
from traindx.experiments.probes.halving import Halving, Yardsticks
from traindx.experiments.probes.measurements import FITS, Measurement, main_metric, other_metric
from traindx.experiments.probes.offers import offers_for
from traindx.experiments.probes.probe_request import ProbeRequest
from traindx.experiments.probes.reference_floors import floors_of, read_examples
from traindx.experiments.probes.rerun_pool import RerunPool, cores_for
from traindx.experiments.probes.source_changes import sources_of
from traindx.experiments.sandbox.workshop import Workshop
from traindx.experiments.verification.hindrances import why_not
from traindx.model.findings import Diagnosis, Skipped
from traindx.model.metric_names import HIGHER_IS_BETTER, kind_of
from traindx.model.probes import PROBE, Probe, Probing
from traindx.model.run import Run
from traindx.readers.opening import open_paths

FIRST_SHARE = 0.3  # of the time, for the run as it is
DIAGNOSIS_SHARE = 0.1  # of the time that is left then
FORKED = 0.5  # of the time of a process that imports torch itself and is recorded, at first
STILL = 0.02  # of its level, by which a metric has to improve over its last part
FEW = 4  # points of a curve

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class ProbedRun:
    """A run, its diagnosis with the probes in it, and whether they were interrupted."""

    run: Run
    diagnosis: Diagnosis
    is_interrupted: bool = False
    recording: str | None = None  # where the run as it is was kept, if it was made here


def probe_command(
    command: Sequence[str],
    run: Run | None,
    request: ProbeRequest,
    *,
    tell: Tell = lambda _: None,
    warn: Tell = lambda _: None,
    announce: Tell = lambda _: None,
) -> ProbedRun:
    """Rerun a command on copies with one change each; without a run, the first rerun is diagnosed.

    `warn` hears of each side effect that cannot be ruled out, before anything runs; `announce` of
    what is going to be tried and how long it takes.
    """
    started = time.monotonic()
    with Workshop(command, Path.cwd(), os.environ, tell) as workshop:
        for warning in workshop.warnings:
            warn(f"side effect not ruled out: {warning}")
        workshop.warm_up()  # beside the first rerun, which starts as it always would
        spent = time.monotonic() - started
        pool = RerunPool(
            workshop,
            request.max_time_s - spent,
            workers=cores_for(os.environ),
            pace=FORKED if workshop.is_warm else 1.0,
            tell=tell,
        )
        found = _Probing(tuple(command), run, request, pool, announce).go()
    judged = replace(found.diagnosis, duration_s=time.monotonic() - started)
    return replace(found, diagnosis=judged)


class _Probing:
    def __init__(
        self,
        command: tuple[str, ...],
        run: Run | None,
        request: ProbeRequest,
        pool: RerunPool,
        announce: Tell,
    ) -> None:
        self._command, self._run, self._request = command, run, request
        self._pool, self._announce = pool, announce
        self._recording: str | None = None
        self._floors: dict[str, float] = {}
        self._extra: list[str] = []
        self._halving: Halving | None = None

    def go(self) -> ProbedRun:
        most = FIRST_SHARE * self._pool.left_s
        self._announce(f"the command runs once on a copy as it is first, for at most {most:.0f} s")
        try:
            control = self._pool.first(most, self._request.max_steps)
        except KeyboardInterrupt:
            return self._given_up("interrupted before anything was known", is_interrupted=True)
        if self._run is None:
            self._run = self._kept(control)
        diagnosis = self._diagnosed(self._run)
        why = _hindrance(control)
        if why:
            return ProbedRun(self._run, _unprobed(diagnosis, why), False, self._recording)
        is_interrupted = False
        try:
            self._probe(control)
        except KeyboardInterrupt:
            is_interrupted = True
        judged = self._judged(diagnosis, control, is_interrupted=is_interrupted)
        return ProbedRun(self._run, judged, is_interrupted, self._recording)

    def _given_up(self, why: str, *, is_interrupted: bool) -> ProbedRun:
        run = self._run or Run()
        return ProbedRun(run, _unprobed(diagnose(run), why), is_interrupted)

    def _kept(self, control: Measurement) -> Run:
        """Keep the run as it is, as `traindx run` would, for the evidence in it."""
        keep = None if self._request.keep is None else os.fspath(self._request.keep)
        folder = make_folder(keep, self._command)
        inner = shutil.ignore_patterns("interventions-*.json", ".*")
        shutil.copytree(control.rerun.folder, folder, dirs_exist_ok=True, ignore=inner)
        self._recording = shown(folder)
        try:
            return open_paths([self._recording], symptoms=self._request.symptoms)
        except TraindxError:
            return Run()

    def _diagnosed(self, run: Run) -> Diagnosis:
        most = max(2.0, DIAGNOSIS_SHARE * self._pool.left_s)
        return diagnose(run, deadline=time.monotonic() + most)

    def _probe(self, control: Measurement) -> None:
        facts = read_census(control.rerun.folder)
        yardsticks = self._yardsticks(control, facts)
        sources = sources_of(self._command, Path.cwd())
        offers = offers_for(
            facts, sources, self._command, is_improving=is_improving(control, yardsticks.main)
        )
        halving = self._halving = Halving(
            self._pool, facts, list(offers.tried), control, yardsticks, announce=self._announce
        )
        halving.left_out += offers.left_out
        if self._request.seeds is not None:
            halving.seeds = max(1, self._request.seeds)
        halving.run_all()
        for name, value, remark in floor_reruns(self._pool, halving, yardsticks.main):
            self._floors[name] = value
            self._extra += [remark] if remark else []

    def _yardsticks(self, control: Measurement, facts: ProgramFacts) -> Yardsticks:
        main = main_metric(control)
        other = other_metric(control, main)
        examples = read_examples(control.rerun.folder)
        models = floors_of(examples, facts.loss_kind) if examples is not None else {}
        self._floors |= floors_in(main, models)
        reached = {n: floors_in(n, models).get("constant") for n in (main, other, FITS) if n}
        constants = {n: value for n, value in reached.items() if value is not None}
        return Yardsticks(main, other, constants)

    def _judged(
        self, diagnosis: Diagnosis, control: Measurement, *, is_interrupted: bool
    ) -> Diagnosis:
        halving = self._halving
        if halving is None:
            return _unprobed(diagnosis, "interrupted before anything was tried")
        probing = self._probing(halving, control)
        ranks = {o.change.says: o.rank for o in halving.offers}
        lead = leading(probing.probes, ranks)
        findings = findings_of(probing, lead)
        assert self._run is not None
        says = "" if lead is not None else summary_of_probes(probing, lead)
        made = with_probes(diagnosis, probing, findings, self._run, says)
        missing = _missing(probing, halving, is_interrupted=is_interrupted)
        return replace(made, skipped=(*made.skipped, *missing))

    def _probing(self, halving: Halving, control: Measurement) -> Probing:
        main = halving.yardsticks.main
        points = control.metrics.get(main)
        level = points.level if points is not None else float("nan")
        probes = sorted(halving.probes(), key=_order)
        remarks = [*remarks_on_floors(main, level, self._floors), *self._extra]
        if main == FITS:
            remarks.append(
                "no held-out metric was seen: changes are judged by how well the training data is "
                "fitted, in evaluation mode"
            )
        if control.rerun.stopped:
            remarks.append(
                f"the run was cut after {control.steps} steps; what shows later is not seen"
            )
        return Probing(
            main, tuple(probes), self._floors, tuple(dict.fromkeys(halving.left_out)),
            tuple(remarks), level, kind_of(main) in HIGHER_IS_BETTER,
        )  # fmt: skip


def _order(probe: Probe) -> tuple[bool, float]:
    gain = probe.after - probe.before
    is_higher = kind_of(probe.metric) in HIGHER_IS_BETTER
    return not probe.helps, -gain if is_higher else gain


def _hindrance(control: Measurement) -> str:
    """Return why nothing can be compared with a run; empty where it can."""
    if control.has_failed:
        return why_not(control.rerun) or "it does not run to its end as it is; verify tests why"
    if not control.steps:
        return why_not(control.rerun) or "no optimizer step was seen"
    if not main_metric(control):
        return "there is no metric to compare by: no loss was seen, and none is printed"
    return ""


def _unprobed(diagnosis: Diagnosis, why: str) -> Diagnosis:
    skipped = (*diagnosis.skipped, Skipped(PROBE, (), f"nothing was probed: {why}"))
    return replace(
        diagnosis,
        skipped=skipped,
        summary=f"Nothing was probed: {why}. {diagnosis.summary}",
        probing=Probing(remarks=(f"nothing was probed: {why}",)),
    )


def _missing(probing: Probing, halving: Halving, *, is_interrupted: bool) -> list[Skipped]:
    """Say what was not tried for lack of time, and how much would do."""
    late = [c for c, why in probing.left_out if why.startswith("no time")]
    if not late and not is_interrupted:
        return []
    why = "interrupted" if is_interrupted else f"--max-time {halving.enough_s:.0f} would do"
    names = f": {', '.join(late)}" if late else ""
    return [Skipped(PROBE, (), f"not tried in the time there was ({why}){names}")]


def is_improving(control: Measurement, main: str) -> bool | None:
    """Tell whether a run still improves where it ends; None where that cannot be seen."""
    names = [n for n in (main, FITS) if n in control.metrics]
    points = next((p for n in names if len((p := control.metrics[n]).values) >= FEW), None)
    if points is None:
        return None
    half = max(1, len(points.values) // 4)
    before = sum(points.values[-2 * half : -half]) / half
    after = sum(points.values[-half:]) / half
    gain = after - before if points.is_higher_better else before - after
    left = max(1.0 - before, 1e-9) if points.is_higher_better else abs(before)
    return gain > STILL * left


__all__ = ["CannotRerun", "ProbedRun", "is_improving", "probe_command"]
