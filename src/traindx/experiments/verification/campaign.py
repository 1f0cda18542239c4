"""The loop over hypotheses: control first, then one change at a time, on top of what is proven."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from traindx.causes import consequences_of
from traindx.errors import PatchFailed
from traindx.experiments.changes import AS_IT_IS, Change
from traindx.experiments.verification.candidates import (
    Candidate,
    candidates_of,
    open_rivals,
    still_suffering,
)
from traindx.experiments.verification.extent import affordable_steps, expected_s, steps_for
from traindx.experiments.verification.laboratory import Laboratory, NoTimeLeft
from traindx.experiments.verification.not_reproduced import why_not_reproduced
from traindx.experiments.verification.observed_rerun import Observation, steps_in
from traindx.experiments.verification.plans import is_worth_trying, why_untestable
from traindx.experiments.verification.request import VerifyRequest
from traindx.experiments.verification.symptoms import Symptom, present
from traindx.experiments.verification.verdicts import ExperimentAnswer, Question, compare
from traindx.model.findings import Diagnosis, Experiment, Verdict
from traindx.model.run import Run

SEEDS_TRIED = 3  # for a symptom that does not come back at once

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What experiments are made on: the command with everything that is proven in place."""

    change: Change
    on_top_of: tuple[str, ...]
    controls: tuple[Observation, ...]
    steps: int | None

    @property
    def seed(self) -> int:
        return self.controls[0].rerun.seed


@dataclass(slots=True)
class Campaign:
    """The experiments on one run."""

    run: Run
    diagnosis: Diagnosis
    laboratory: Laboratory
    request: VerifyRequest
    progress: Progress
    announce: Callable[[str], None] = lambda _: None
    answers: dict[str, ExperimentAnswer] = field(default_factory=dict)
    proven: dict[str, Change] = field(default_factory=dict)
    waiting: list[Candidate] = field(default_factory=list)
    everyone: list[Candidate] = field(default_factory=list)
    done: int = 0

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        return tuple(a.experiment for a in self.answers.values())

    def run_all(self) -> None:
        """Test the leading hypotheses, then what is left once the proven causes are removed."""
        candidates = candidates_of(self.run, self.diagnosis, self.request.causes)
        self.everyone = list(candidates)
        candidates = self._set_aside(candidates)
        if not candidates:
            return
        ground = self._first_ground(candidates)
        while ground is not None and candidates:
            best = self._round(candidates, ground)
            if best is None:
                self._untangle(ground)
                return
            before, ground = ground, self._build_on(best, ground)
            self._explain_away(best, before, ground)
            candidates = self._next(ground)
            self.everyone += candidates

    def _set_aside(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Keep what a rerun can test, and say why it cannot test the rest."""
        kept = []
        for candidate in candidates:
            if not candidate.is_grounded:
                self.give_up(candidate, "the run shows no symptom that this could explain")
            elif not candidate.changes:
                if candidate.is_asked_for or candidate.hypothesis in self.diagnosis.root_causes:
                    self.give_up(candidate, f"not tested: {why_untestable(candidate.cause)}")
            else:
                kept.append(candidate)
        return kept

    def give_up(self, candidate: Candidate, reason: str) -> None:
        """Leave a candidate undecided, for a reason."""
        change = candidate.changes[0].says if candidate.changes else ""
        experiment = Experiment(candidate.cause, change, Verdict.UNDECIDED, reason)
        self.answers.setdefault(candidate.cause, ExperimentAnswer(experiment))

    # the control

    def _first_ground(self, candidates: Sequence[Candidate]) -> Ground | None:
        """Rerun the command as it is until a symptom comes back; None if it does not."""
        self.waiting = list(candidates)
        symptoms = tuple({s: None for c in candidates for s in c.symptoms})
        steps = self._steps(candidates)
        self.announce(self._intention(candidates, steps))
        control = self._see(AS_IT_IS, 0, steps)
        if control.rerun.stopped == "time" and control.steps:
            steps = control.steps  # as far as the time goes: the changed ones go no further
        if not symptoms or present(symptoms, control):
            return Ground(AS_IT_IS, (), (control,), steps)
        why_not = why_not_reproduced(control, self.run)
        if not why_not:
            ground = self._insist(symptoms, control, steps)
            if ground is not None:
                return ground
            why_not = _absent(symptoms, control)
        for candidate in candidates:
            self.give_up(candidate, why_not)
        self.waiting.clear()
        return None

    def _insist(
        self, symptoms: Sequence[Symptom], control: Observation, steps: int | None
    ) -> Ground | None:
        """Try with more steps where it was cut, then with other seeds: it may come and go."""
        more = self.request.max_steps
        if steps is not None and steps != more and control.rerun.stopped == "steps":
            steps, control = more, self._see(AS_IT_IS, 0, more)
            if present(symptoms, control):
                return Ground(AS_IT_IS, (), (control,), steps)
        if self.request.seeds == 1:
            return None
        for seed in range(1, SEEDS_TRIED):
            control = self._see(AS_IT_IS, seed, steps)
            if present(symptoms, control):
                return Ground(AS_IT_IS, (), (control,), steps)
        return None

    def _steps(self, candidates: Sequence[Candidate]) -> int | None:
        """Return one number of steps for all, so that they share their controls."""
        wanted = [
            steps_for(c.cause, c.symptoms, self.run, self.request.max_steps) for c in candidates
        ]
        known = [w for w in wanted if w is not None]
        steps: int | None = None
        if len(known) == len(wanted):
            steps = max(known)
        elif self.request.max_steps is not None and steps_in(self.run) > self.request.max_steps:
            steps = self.request.max_steps
        most = affordable_steps(self.run, self.laboratory.left_s)
        total = steps_in(self.run)
        return most if most is not None and most < (steps or total) else steps

    def _intention(self, candidates: Sequence[Candidate], steps: int | None) -> str:
        """Say what is going to be done, and how long it takes."""
        names = ", ".join(c.cause for c in candidates)
        each = f"{steps} steps each" if steps is not None else "each to its end"
        took = expected_s(self.run, steps)
        about = f", about {took:.0f} s a rerun" if took is not None else ""
        count = 1 + sum(len(c.changes) for c in candidates)
        limit = f"within {self.laboratory.left_s:.0f} s (--max-time)"
        return f"testing {names}: up to {count} reruns per seed, {each}{about}, {limit}"

    def _see(self, change: Change, seed: int, steps: int | None) -> Observation:
        self.progress(self.done, self.done + len(self.waiting), change.says)
        return self.laboratory.see(change, seed, steps)

    # the rounds

    def _round(self, candidates: Sequence[Candidate], ground: Ground) -> Candidate | None:
        """Test the candidates on one ground and return the first that is confirmed.

        What was asked for is tested although another is confirmed; what helps against many
        causes is not: there it would only repeat what is known.
        """
        best: Candidate | None = None
        self.waiting = list(candidates)
        for candidate in candidates:
            if best is not None and (candidate.is_generic or not candidate.is_asked_for):
                continue
            answer = self._test(candidate, ground)
            if answer.verdict is Verdict.CONFIRMED and best is not None:
                answer = _second(answer, best.cause)
            self._keep(candidate.cause, answer)
            self.waiting.remove(candidate)
            self.done += 1
            if best is None and answer.verdict is Verdict.CONFIRMED:
                best = candidate
        return best

    def _keep(self, cause: str, answer: ExperimentAnswer) -> None:
        """Keep the answer that says most: an earlier test may have been on another ground."""
        old = self.answers.get(cause)
        if old is None or _weight(answer) >= _weight(old):
            self.answers[cause] = answer

    def _test(self, candidate: Candidate, ground: Ground) -> ExperimentAnswer:
        """Try the changes of a candidate in turn until one of them decides."""
        best: tuple[ExperimentAnswer, Change] | None = None
        last: tuple[ExperimentAnswer, Change] | None = None
        for change in candidate.changes:
            if last and not is_worth_trying(change, last[1], has_cleared=last[0].has_cleared):
                continue
            try:
                answer = self._try(candidate, change, ground)
            except PatchFailed as error:
                answer = ExperimentAnswer(_failed(candidate.cause, change, str(error)))
            last = answer, change
            if best is None or _weight(answer) > _weight(best[0]):
                best = last
            if answer.verdict is Verdict.CONFIRMED or answer.experiment.applied == 0:
                break
        assert best is not None
        answer, change = best
        if answer.verdict is Verdict.CONFIRMED:
            answer = self._doubted(candidate, answer, ground)
        if answer.verdict is Verdict.CONFIRMED or answer.has_cleared:
            self.proven[candidate.cause] = change
        return answer

    def _try(self, candidate: Candidate, change: Change, ground: Ground) -> ExperimentAnswer:
        question = self._question(candidate, change, ground.on_top_of)
        with_change = ground.change.with_(change)
        changed = [self._see(with_change, ground.seed, ground.steps)]
        controls = [ground.controls[0]]
        answer = compare(question, controls, changed)
        if answer.verdict is not Verdict.CONFIRMED:
            return answer
        for seed in self._more_seeds(ground.seed):
            try:
                control = self._see(ground.change, seed, ground.steps)
                if answer.reproduced and not present(answer.reproduced, control):
                    continue  # it comes and goes: a seed without the symptom tells nothing
                changed.append(self._see(with_change, seed, ground.steps))
            except NoTimeLeft:
                break  # what fewer seeds show is known all the same
            controls.append(control)
        return compare(question, controls, changed)

    def _question(
        self, candidate: Candidate, change: Change, on_top_of: tuple[str, ...]
    ) -> Question:
        return Question(
            candidate.cause,
            change,
            candidate.symptoms,
            candidate.harm,
            on_top_of,
            candidate.stands,
        )

    def _more_seeds(self, first: int) -> list[int]:
        count = (
            self.request.seeds
            if self.request.seeds is not None
            else self.laboratory.affordable_seeds()
        )
        return [seed for seed in range(count) if seed != first][: max(0, count - 1)]

    def _doubted(
        self, candidate: Candidate, answer: ExperimentAnswer, ground: Ground
    ) -> ExperimentAnswer:
        """A change that helps against many causes proves none while a specific one is open."""
        if not candidate.is_generic:
            return answer
        seen = {c.cause for c in self.everyone if c.is_shown}  # to happen
        settled = {
            c
            for c, a in self.answers.items()
            if a.verdict is Verdict.REFUTED or (a.is_without_effect and c not in seen)
        }
        rivals = open_rivals(candidate, self.everyone, settled.union(ground.on_top_of))
        if not rivals:
            return answer
        why = f"it helps, as it would if {' or '.join(rivals)} were the cause: not ruled out"
        return _as(answer, Verdict.UNDECIDED, f"{why}. {answer.experiment.reason}")

    # what follows from a proof

    def _build_on(self, proof: Candidate, ground: Ground) -> Ground:
        """Return the ground with what is proven in place; its controls are there already."""
        change = ground.change.with_(self.proven[proof.cause])
        control = self._see(change, ground.seed, ground.steps)
        return Ground(change, (*ground.on_top_of, proof.cause), (control,), ground.steps)

    def _next(self, ground: Ground) -> list[Candidate]:
        """Return what the run still suffers from with everything that is proven in place."""
        control = ground.controls[0]
        found = candidates_of(control.run, control.diagnosis, self.request.causes, ground.on_top_of)
        return [c for c in still_suffering(found, control.run) if c.changes]

    def _explain_away(self, proof: Candidate, before: Ground, after: Ground) -> None:
        """Refute what was to explain the same: it is gone, and this was not changed.

        A generic proof does not tell causes apart, and what follows from a proven cause is real.
        """
        for candidate in list(self.waiting):
            self.waiting.remove(candidate)
            self.done += 1
            is_effect = candidate.cause in consequences_of(proof.cause)
            follows = is_effect and not candidate.is_generic  # a rate is set, it does not follow
            is_same = self.proven[proof.cause] in candidate.changes  # it would prove both
            was = present(candidate.symptoms, before.controls[0])
            if proof.is_generic or candidate.stands or follows or is_same or not was:
                if candidate.is_asked_for:
                    self.give_up(candidate, f"not tested: {proof.cause} is confirmed before it")
            elif not present(was, after.controls[0]):
                self._keep(candidate.cause, self._needless(candidate, proof, before, after))
        self._refute_by_contrast(proof)

    def _needless(
        self, candidate: Candidate, proof: Candidate, before: Ground, after: Ground
    ) -> ExperimentAnswer:
        """Return the refutation of a cause without which all that it would explain is gone."""
        was = present(candidate.symptoms, before.controls[0])
        told = tuple(s.says for s in was)
        experiment = Experiment(
            candidate.cause,
            self.proven[proof.cause].says,
            Verdict.REFUTED,
            f"gone with {proof.cause} alone removed: {'; '.join(told)}",
            (
                before.controls[0].trial(told, is_changed=False),
                after.controls[0].trial((), is_changed=True),
            ),
            on_top_of=before.on_top_of,
        )
        return ExperimentAnswer(experiment)

    def _refute_by_contrast(self, proof: Candidate) -> None:
        """Where a change left the symptom in place and another one took it away, it is refuted."""
        for candidate in self.everyone:
            old = self.answers.get(candidate.cause)
            if old is None or old.verdict is not Verdict.UNDECIDED or old.has_cleared:
                continue
            if candidate.stands:
                continue
            changed = [t for t in old.experiment.trials if t.is_changed]
            if changed and all(t.symptoms for t in changed) and candidate.shares_symptom(proof):
                reason = f"{old.experiment.reason}; with {proof.cause} removed it is gone"
                self.answers[candidate.cause] = _as(old, Verdict.REFUTED, reason)

    def _untangle(self, ground: Ground) -> None:
        """Two causes may each keep the run from learning: then only both changes show it.

        Each of them is tested with the other one in place, and both are confirmed or neither.
        """
        cleared = [c for c in self.everyone if self._has_cleared(c) and not c.is_generic]
        for first in cleared:
            base = self._build_on(first, ground)
            for second in self._others(base, first):
                answer = self._test(second, base)
                if answer.verdict is not Verdict.CONFIRMED:
                    continue
                back = self._test_back(first, second, ground)
                if back.verdict is Verdict.CONFIRMED:
                    self._keep(second.cause, answer)
                    self._keep(first.cause, back)
                    return

    def _test_back(self, first: Candidate, second: Candidate, ground: Ground) -> ExperimentAnswer:
        """Test the first of two causes with the second one removed."""
        if all(s.crash is None for s in first.symptoms):
            return self._test(first, self._build_on(second, ground))
        # a program fails at one place after the other: without the first change it gets nowhere
        both = self._build_on(second, self._build_on(first, ground))
        question = self._question(first, self.proven[first.cause], (second.cause,))
        return compare(question, ground.controls, both.controls)

    def _has_cleared(self, candidate: Candidate) -> bool:
        answer = self.answers.get(candidate.cause)
        return answer is not None and answer.has_cleared

    def _others(self, base: Ground, first: Candidate) -> list[Candidate]:
        """Return what is left to test on top of a change: what clears its own symptom first."""
        left = [c for c in self._next(base) if c.cause != first.cause]
        self.everyone += [c for c in left if c.cause not in {e.cause for e in self.everyone}]
        return sorted(left, key=lambda c: (not self._has_cleared(c), c.is_generic))


def _weight(answer: ExperimentAnswer) -> int:
    """Return how much an answer says: a proof most, what clears the symptom more than nothing."""
    if answer.verdict is Verdict.CONFIRMED:
        return 4
    if answer.has_cleared:
        return 3
    if answer.verdict is Verdict.REFUTED:
        return 2
    return 1 if answer.experiment.trials else 0


def _as(answer: ExperimentAnswer, verdict: Verdict, reason: str) -> ExperimentAnswer:
    return replace(answer, experiment=replace(answer.experiment, verdict=verdict, reason=reason))


def _second(answer: ExperimentAnswer, first: str) -> ExperimentAnswer:
    why = f"it helps as well, but {first} does so too: which of them it was, this does not tell"
    return _as(answer, Verdict.UNDECIDED, f"{why}. {answer.experiment.reason}")


def _failed(cause: str, change: Change, why: str) -> Experiment:
    return Experiment(cause, change.says, Verdict.UNDECIDED, why, patch=change.patch)


def _absent(symptoms: Sequence[Symptom], control: Observation) -> str:
    told = "; ".join(s.says for s in symptoms[:2])
    return f"the rerun as it is does not show the symptom ({told}): it {control.ending}"
