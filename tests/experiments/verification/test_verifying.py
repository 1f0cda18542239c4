"""The loop over hypotheses, on imagined reruns and on real ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.experiments.arms import (
    Imagined,
    diagnosis,
    falling,
    finding,
    flat,
    hypothesis,
    make_run,
    observation,
)

from traindx.errors import CannotRerun
from traindx.experiments.changes import AS_IT_IS, Change
from traindx.experiments.verification import laboratory, symptoms
from traindx.experiments.verification.observed_rerun import Observation, RerunCrash, steps_in
from traindx.experiments.verification.request import VerifyRequest
from traindx.experiments.verification.verification import Verification, verify
from traindx.model.findings import Diagnosis, Experiment, Verdict

BROKEN = np.append(flat(100), np.full(100, np.nan))
NAN = finding("nan-or-inf-loss", "lr-too-high", "missing-zero-grad", "nan-in-data")
CARRIED = finding("unzeroed-gradients", shows="missing-zero-grad")
FROZEN = finding("frozen-layers-in-training", shows="frozen-parameters")
RATE = finding("zero-learning-rate", shows="lr-zero")

React = Callable[[Change, int], Observation]


@pytest.fixture
def imagine(monkeypatch: pytest.MonkeyPatch) -> Callable[[React], Imagined]:
    def make(react: React) -> Imagined:
        workshop = Imagined(react)
        monkeypatch.setattr(laboratory, "observe", workshop.observe)
        return workshop

    return make


def names(change: Change) -> set[str]:
    return {i.name for i in change.interventions}


def verified(
    workshop: Imagined, found: Diagnosis, *, seeds: int = 1, causes: tuple[str, ...] = ()
) -> Verification:
    return verify(make_run(BROKEN), found, workshop, VerifyRequest(causes, seeds=seeds))


def verdicts(found: Verification) -> dict[str, Verdict]:
    return {e.cause: e.verdict for e in found.diagnosis.experiments}


def experiment(found: Verification, cause: str) -> Experiment:
    return next(e for e in found.diagnosis.experiments if e.cause == cause)


def test_a_specific_cure_is_tested_first_and_explains_the_rest_away(
    imagine: Callable[[React], Imagined],
) -> None:
    high = hypothesis("lr-too-high", NAN, confidence=0.9)
    clear = hypothesis("missing-zero-grad", CARRIED, confidence=0.5)

    def react(change: Change, seed: int) -> Observation:
        if names(change):
            return observation(falling(seed=seed), change=change, seed=seed)
        return observation(BROKEN, NAN, CARRIED, seed=seed, hypotheses=(high, clear))

    workshop = imagine(react)
    found = verified(workshop, diagnosis(high, clear))
    assert names(workshop.changes[1]) == {"zero-grad"}
    assert verdicts(found) == {
        "missing-zero-grad": Verdict.CONFIRMED,
        "lr-too-high": Verdict.REFUTED,
    }
    assert len(workshop.changes) == 2, "the damping change was not even run"
    assert found.unfinished == ()


def test_a_damping_change_confirms_nothing_while_what_is_shown_is_open(
    imagine: Callable[[React], Imagined],
) -> None:
    high = hypothesis("lr-too-high", NAN, confidence=0.9)
    detached = hypothesis("detached-loss", finding("cut", shows="detached-loss"), confidence=0.95)

    def react(change: Change, seed: int) -> Observation:
        if names(change):
            return observation(falling(), change=change)
        return observation(BROKEN, NAN, hypotheses=(high, detached))

    found = verified(imagine(react), diagnosis(detached, high))
    assert verdicts(found)["lr-too-high"] is Verdict.UNDECIDED
    assert "detached-loss" in experiment(found, "lr-too-high").reason
    assert "no patch" in experiment(found, "detached-loss").reason
    alone = verified(imagine(react), diagnosis(high))
    assert verdicts(alone) == {"lr-too-high": Verdict.CONFIRMED}


def test_a_damping_change_does_not_take_the_place_of_a_likelier_one(
    imagine: Callable[[React], Imagined],
) -> None:
    loss = finding("loss-divergence", "lr-too-high", "missing-gradient-clipping")
    high = hypothesis("lr-too-high", loss, confidence=0.9)
    clip = hypothesis("missing-gradient-clipping", loss, confidence=0.1)

    def react(change: Change, seed: int) -> Observation:
        if names(change):
            return observation(falling(), change=change)
        return observation(BROKEN, loss, hypotheses=(high, clip))

    found = verified(imagine(react), diagnosis(high, clip), causes=("missing-gradient-clipping",))
    assert verdicts(found) == {
        "lr-too-high": Verdict.CONFIRMED,
        "missing-gradient-clipping": Verdict.UNDECIDED,
    }


def test_a_confirmation_is_repeated_with_other_seeds(
    imagine: Callable[[React], Imagined],
) -> None:
    high = hypothesis("lr-too-high", NAN)

    def react(change: Change, seed: int) -> Observation:
        losses = BROKEN if not names(change) or seed == 2 else falling(seed=seed)
        told = (NAN,) if losses is BROKEN else ()
        return observation(losses, *told, change=change, seed=seed)

    found = verified(imagine(react), diagnosis(high), seeds=3)
    assert verdicts(found) == {"lr-too-high": Verdict.UNDECIDED}
    found = verified(imagine(react), diagnosis(high), seeds=2)
    assert verdicts(found) == {"lr-too-high": Verdict.CONFIRMED}
    assert [t.seed for t in experiment(found, "lr-too-high").trials] == [0, 1, 0, 1]


def test_two_reasons_are_found_one_on_top_of_the_other(
    imagine: Callable[[React], Imagined],
) -> None:
    bad = finding("nan-or-inf-batch", shows="nan-in-data")
    pairs = finding("n-by-n-loss", shows="target-shape-broadcast")
    data = hypothesis("nan-in-data", bad, confidence=0.99)
    shape = hypothesis("target-shape-broadcast", pairs, confidence=0.98)

    def react(change: Change, seed: int) -> Observation:
        made = names(change)
        told = [] if "skip-bad-batches" in made else [(bad, data)]
        told += [] if "target-shape" in made else [(pairs, shape)]
        losses = BROKEN if (bad, data) in told else falling(end=1.7 if told else 0.1)
        known = [h for _, h in told]
        return observation(losses, *(f for f, _ in told), change=change, hypotheses=known)

    found = verified(imagine(react), diagnosis(data, shape))
    assert set(verdicts(found).values()) == {Verdict.CONFIRMED}
    assert experiment(found, "target-shape-broadcast").on_top_of == ("nan-in-data",)


def test_two_locks_are_opened_together(imagine: Callable[[React], Imagined]) -> None:
    frozen = hypothesis("frozen-parameters", FROZEN, confidence=0.99)
    zero = hypothesis("lr-zero", RATE, confidence=0.98)

    def react(change: Change, seed: int) -> Observation:
        made = names(change)
        told = [] if "unfreeze" in made else [(FROZEN, frozen)]
        told += [] if "learning-rate" in made else [(RATE, zero)]
        losses = flat(seed=len(made)) if told else falling()
        known = [h for _, h in told]
        return observation(losses, *(f for f, _ in told), change=change, hypotheses=known)

    found = verified(imagine(react), diagnosis(frozen, zero))
    assert set(verdicts(found).values()) == {Verdict.CONFIRMED}
    assert experiment(found, "lr-zero").on_top_of == ("frozen-parameters",)
    assert experiment(found, "frozen-parameters").on_top_of == ("lr-zero",)


def test_two_crashes_are_taken_one_after_the_other(
    imagine: Callable[[React], Imagined], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = RerunCrash("RuntimeError", "sizes", "train.py", "forward", 19, "x = self.fc1(x)")
    two = RerunCrash("IndexError", "beyond", "train.py", "forward", 21, "x = self.table(x)")
    monkeypatch.setattr(symptoms, "crash_of", lambda run: two if steps_in(run) else one)
    shape = finding("matmul-shape-error", shows="shape-mismatch")
    index = finding("index-out-of-range-error", shows="index-out-of-range")
    first = hypothesis("shape-mismatch", shape, confidence=0.99, patch="one")
    second = hypothesis("index-out-of-range", index, confidence=0.99)

    def react(change: Change, seed: int) -> Observation:
        if change.patch is None:
            return observation(None, shape, crash=one, steps=0, hypotheses=(first,))
        if names(change):
            return observation(falling(60), change=change)
        return observation(falling(3), index, crash=two, change=change, hypotheses=(second,))

    found = verify(
        make_run(None, exit_code=1),
        diagnosis(first),
        imagine(react),
        VerifyRequest(seeds=1, max_time_s=60.0),
    )
    assert verdicts(found) == {
        "shape-mismatch": Verdict.CONFIRMED,
        "index-out-of-range": Verdict.CONFIRMED,
    }
    assert experiment(found, "index-out-of-range").on_top_of == ("shape-mismatch",)


def test_a_symptom_that_does_not_come_back_leaves_all_undecided(
    imagine: Callable[[React], Imagined],
) -> None:
    workshop = imagine(lambda change, seed: observation(falling(), change=change, seed=seed))
    found = verify(
        make_run(BROKEN), diagnosis(hypothesis("lr-too-high", NAN)), workshop, VerifyRequest()
    )
    assert verdicts(found) == {"lr-too-high": Verdict.UNDECIDED}
    assert "does not show" in experiment(found, "lr-too-high").reason
    assert set(map(str, workshop.changes)) == {str(AS_IT_IS)}, "only controls, of other seeds"


def test_a_rerun_that_fails_otherwise_is_recognised(imagine: Callable[[React], Imagined]) -> None:
    crash = RerunCrash("ValueError", "odd")
    workshop = imagine(lambda change, seed: observation(falling(20), crash=crash))
    found = verified(workshop, diagnosis(hypothesis("lr-too-high", NAN)))
    assert verdicts(found) == {"lr-too-high": Verdict.UNDECIDED}
    assert "otherwise" in experiment(found, "lr-too-high").reason
    assert len(workshop.changes) == 1


def test_hours_of_set_up_are_not_waited_for(imagine: Callable[[React], Imagined]) -> None:
    workshop = imagine(lambda change, seed: observation(None, stopped="time"))
    found = verified(workshop, diagnosis(hypothesis("lr-too-high", NAN)))
    assert "passed before the first step" in experiment(found, "lr-too-high").reason
    assert workshop.limits[0].time_s < 600.0


def test_a_refusal_of_the_workshop_is_told(imagine: Callable[[React], Imagined]) -> None:
    def refuse(change: Change, seed: int) -> Observation:
        raise CannotRerun("the project is gone")

    found = verified(imagine(refuse), diagnosis(hypothesis("lr-too-high", NAN)))
    assert "the project is gone" in experiment(found, "lr-too-high").reason


def test_ctrl_c_returns_what_is_known(imagine: Callable[[React], Imagined]) -> None:
    high = hypothesis("lr-too-high", NAN, confidence=0.4)
    clear = hypothesis("missing-zero-grad", NAN, confidence=0.5)

    def react(change: Change, seed: int) -> Observation:
        if "learning-rate" in names(change):
            raise KeyboardInterrupt
        return observation(BROKEN, NAN, change=change)

    found = verified(imagine(react), diagnosis(clear, high))
    assert verdicts(found) == {
        "missing-zero-grad": Verdict.REFUTED,
        "lr-too-high": Verdict.UNDECIDED,
    }
    assert found.is_interrupted and found.unfinished[0].startswith("lr-too-high: ")


def test_time_that_is_up_leaves_the_rest_unfinished(
    imagine: Callable[[React], Imagined],
) -> None:
    found = verify(
        make_run(BROKEN),
        diagnosis(hypothesis("lr-too-high", NAN)),
        imagine(lambda change, seed: observation(BROKEN, NAN, change=change)),
        VerifyRequest(max_time_s=0.5),
    )
    assert verdicts(found) == {"lr-too-high": Verdict.UNDECIDED}
    assert "--max-time" in found.diagnosis.experiments[0].reason, "it says what it would need"
    assert found.unfinished == (
        "lr-too-high: no time was left to test it; "
        "--max-time 3 or fewer steps (--max-steps) would do",
    )


def test_a_healthy_run_has_nothing_to_test(imagine: Callable[[React], Imagined]) -> None:
    workshop = imagine(lambda change, seed: observation(falling(), change=change))
    healthy = diagnosis()
    found = verify(make_run(falling()), healthy, workshop, VerifyRequest())
    assert found.diagnosis.experiments == () and "nothing to test" in found.unfinished[0]
    forced = verify(make_run(falling()), healthy, workshop, VerifyRequest(("lr-too-high",)))
    assert verdicts(forced) == {"lr-too-high": Verdict.UNDECIDED}
    assert workshop.changes == []


def test_what_was_asked_for_is_tested_beside_what_is_confirmed(
    imagine: Callable[[React], Imagined],
) -> None:
    frozen = hypothesis("frozen-parameters", FROZEN, confidence=0.99)

    def react(change: Change, seed: int) -> Observation:
        if "unfreeze" in names(change):
            return observation(falling(), change=change)
        counts = dict.fromkeys(names(change), 0)
        return observation(flat(), FROZEN, change=change, applied=counts, hypotheses=(frozen,))

    asked = ("frozen-parameters", "missing-zero-grad")
    found = verified(imagine(react), diagnosis(frozen), causes=asked)
    assert verdicts(found) == {
        "frozen-parameters": Verdict.CONFIRMED,
        "missing-zero-grad": Verdict.REFUTED,
    }
