"""Reruns that never ran: observations made of curves, findings and crashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from traindx.experiments.changes import AS_IT_IS, Change, Limits, Rerun
from traindx.experiments.verification.learning_curve import course
from traindx.experiments.verification.observed_rerun import Observation, RerunCrash
from traindx.model.findings import (
    Diagnosis,
    Evidence,
    Finding,
    Hypothesis,
    Remedy,
    Status,
    Strength,
)
from traindx.model.recording import Counts, Ending, Process, Recording
from traindx.model.run import Floats, Origin, Run, Series

LOG = "rank0-1.jsonl"


def falling(count: int = 200, start: float = 2.3, end: float = 0.3, seed: int = 0) -> Floats:
    noise = 0.03 * start * np.random.default_rng(seed).standard_normal(count)
    return end + (start - end) * np.exp(-np.arange(count) / (count / 6)) + noise


def flat(count: int = 200, level: float = 2.3, seed: int = 0) -> Floats:
    return level + 0.03 * level * np.random.default_rng(seed).standard_normal(count)


def finding(
    detector: str, *causes: str, shows: str | None = None, onset: float | None = 0.0, at: str = LOG
) -> Finding:
    return Finding(
        claim=f"{detector} is there",
        strength=Strength.STRONG,
        evidence=(Evidence("seen", at, "line 7"),),
        suggests=dict.fromkeys(causes, Strength.STRONG),
        shows=shows,
        is_symptom=True,
        onset=onset,
        detector=detector,
    )


def hypothesis(
    cause: str, *findings: Finding, confidence: float = 0.8, patch: str | None = None
) -> Hypothesis:
    remedies = (Remedy("apply it", "", "", "", patch),) if patch else ()
    return Hypothesis(cause, confidence, findings=findings, remedies=remedies)


def diagnosis(*hypotheses: Hypothesis, findings: Sequence[Finding] = ()) -> Diagnosis:
    told = dict.fromkeys(map(id, findings))
    every = [*findings, *(f for h in hypotheses for f in h.findings if id(f) not in told)]
    once = list({id(f): f for f in every}.values())
    status = Status.PARTIAL if once else Status.HEALTHY
    return Diagnosis(status, "", hypotheses=hypotheses, findings=tuple(once))


def make_run(losses: Floats | None, *, exit_code: int | None = 0, steps: int | None = None) -> Run:
    count = steps if steps is not None else 0 if losses is None else len(losses)
    counts = Counts(9, steps=count, backwards=count, is_end=True)
    process = Process(path=LOG, counts=counts)
    ending = Ending(exit_code=exit_code, started_s=0.0, ended_s=5.0)
    series = {}
    if losses is not None and len(losses):
        at = np.arange(len(losses), dtype=np.float64)
        series["loss/train"] = Series("loss/train", losses, at, Origin(LOG, "loss"))
    return Run(series=series, recording=Recording((process,), ending))


def observation(
    losses: Floats | None,
    *findings: Finding,
    change: Change = AS_IT_IS,
    seed: int = 0,
    crash: RerunCrash | None = None,
    stopped: str = "",
    applied: dict[str, int] | None = None,
    hypotheses: Sequence[Hypothesis] = (),
    steps: int | None = None,
    notes: tuple[str, ...] = (),
) -> Observation:
    exit_code = 1 if crash is not None else 0
    counted = {i.name: 9 for i in change.interventions} if applied is None else applied
    first_s = None if losses is None else 0.5
    rerun = Rerun(change, seed, Path(), exit_code, stopped, first_s, 1.0, counted, notes)
    run = make_run(losses, exit_code=exit_code, steps=steps)
    seen = course(losses) if losses is not None else course(np.empty(0))
    return Observation(rerun, run, diagnosis(*hypotheses, findings=findings), seen, crash)


class Imagined:
    """A workshop that looks up what a change leads to; the rerun carries the observation."""

    def __init__(self, react: Callable[[Change, int], Observation]) -> None:
        self.react = react
        self.changes: list[Change] = []
        self.limits: list[Limits] = []
        self.warnings: tuple[str, ...] = ("it talks to example.org",)
        self.seen: dict[int, Observation] = {}

    def rerun(
        self, change: Change, seed: int, limits: Limits, hang_after_s: float | None = None
    ) -> Rerun:
        self.changes.append(change)
        self.limits.append(limits)
        made = self.react(change, seed)
        self.seen[id(made.rerun)] = made
        return made.rerun

    def observe(self, rerun: Rerun) -> Observation:
        return self.seen[id(rerun)]
