"""Injected faults carried to the end: what experiments confirm, and which wrong ideas they refute.

    python -m bench.experiments [--only TEXT] [--seeds N]

Each program is recorded, diagnosed, and its cause tested beside plausible wrong ones. A wrong cause
that is confirmed is the worst outcome there is, and is counted apart.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from traindx.diagnosis.engine import diagnose
from traindx.experiments.changes import AS_IT_IS, Limits
from traindx.experiments.sandbox.workshop import Workshop
from traindx.experiments.verification.request import VerifyRequest
from traindx.experiments.verification.verification import Verification, verify
from traindx.model.findings import Diagnosis, Verdict
from traindx.readers.opening import open_paths

TESTS = Path(__file__).parent.parent / "tests"
PROGRAMS = (TESTS / "experiments" / "programs", TESTS / "capture" / "launcher" / "programs")
MAX_TIME_S = 900.0


@dataclass(frozen=True, slots=True)
class Case:
    """A program, the causes that are there, and plausible ones that are not."""

    program: str
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    is_seed: bool = False  # one of the scenarios the project grew from: nothing is named to it
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return next(f for p in PROGRAMS if (f := p / f"{self.program}.py").is_file())


CASES = (
    Case("seed_shape", ("shape-mismatch",), is_seed=True),
    Case("seed_no_step", ("missing-optimizer-step",), is_seed=True),
    Case("seed_bad_index", ("index-out-of-range",), is_seed=True),
    Case("seed_late_nan", ("lr-too-high",), is_seed=True),
    Case("seed_in_place", ("in-place-modification",), is_seed=True),
    Case("no_step", ("missing-optimizer-step",), ("lr-too-low",)),
    Case("no_zero_grad", ("missing-zero-grad",), ("lr-too-high", "unnormalised-inputs")),
    Case(
        "softmax_in_model", ("softmax-before-cross-entropy",), ("lr-too-low", "missing-zero-grad")
    ),
    Case("stale_optimizer", ("parameters-not-in-optimizer",), ("missing-zero-grad",)),
    Case("frozen_by_mistake", ("frozen-parameters",), ("lr-too-low", "bad-initialisation")),
    Case("cleared_before_step", ("gradients-cleared-before-step",), ("lr-too-low",)),
    Case("broadcast_mse", ("target-shape-broadcast",), ("lr-too-low", "unnormalised-inputs")),
    Case("list_of_layers", ("unregistered-submodules",), ("bad-initialisation",)),
    Case("left_in_eval", ("training-in-eval-mode",), ("missing-zero-grad",)),
    Case("validation_in_train", ("validation-in-train-mode",), ("missing-zero-grad",)),
    Case("nan_in_data", ("nan-in-data",), ("lr-too-high", "fp16-overflow")),
    Case("bad_label", ("label-out-of-range",), ("missing-zero-grad",)),
    Case("lr_too_high", ("lr-too-high",), ("missing-zero-grad", "fp16-overflow")),
    Case("zero_lr", ("lr-zero",), ("weight-decay-too-high",)),
    Case("decay_too_high", ("weight-decay-too-high",), ("lr-too-high", "missing-zero-grad")),
    Case("zero_init", ("bad-initialisation",), ("unnormalised-inputs", "lr-too-low")),
    Case("dead_relu", ("dead-relu",), ("unnormalised-inputs",)),
    Case("raw_inputs", ("unnormalised-inputs",), ("bad-initialisation",)),
    Case("log_of_zero", ("unstable-operation",), ("nan-in-data", "fp16-overflow")),
    Case("masked_row", ("fully-masked-attention",), ("nan-in-data",)),
    Case("nll_of_logits", ("loss-expects-probabilities",), ("missing-zero-grad",)),
    Case("two_reasons", ("nan-in-data", "target-shape-broadcast"), is_seed=True),
    Case("two_locks", ("lr-zero", "frozen-parameters"), is_seed=True),
    Case("healthy", (), ("lr-too-high", "missing-zero-grad")),
    Case("plain_loop", (), ("lr-too-low",)),
)


def carry_out(case: Case, *, seeds: int | None = None) -> Verification:
    """Record a program, diagnose it, and test its causes."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        shutil.copy(case.path, folder / "train.py")
        environ = {**os.environ, "OMP_NUM_THREADS": "1", **case.environ}
        with Workshop([sys.executable, "train.py"], folder, environ) as workshop:
            first = workshop.rerun(AS_IT_IS, 0, Limits(MAX_TIME_S))
            run = open_paths([os.fspath(first.folder)])
            causes = () if case.is_seed else (*case.right, *case.wrong)
            request = VerifyRequest(causes, max_time_s=MAX_TIME_S, seeds=seeds)
            return verify(run, diagnose(run), workshop, request)


def marks(case: Case, diagnosis: Diagnosis) -> dict[str, str]:
    """Say of each cause how its verdict compares with the truth."""
    by_cause = {e.cause: e.verdict for e in diagnosis.experiments}
    told = {}
    for cause in case.right:
        verdict = by_cause.get(cause)
        told[cause] = verdict.value if verdict is not None else "not tested"
        told[cause] = "WRONGLY REFUTED" if verdict is Verdict.REFUTED else told[cause]
    for cause, verdict in by_cause.items():
        if cause not in case.right:
            is_worst = verdict is Verdict.CONFIRMED
            told[f"not {cause}"] = "WRONGLY CONFIRMED" if is_worst else verdict.value
    return told


def main() -> int:
    """Carry out the cases and print a table of verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="programs whose name holds this text")
    parser.add_argument("--seeds", type=int, help="seeds of each confirmation")
    options = parser.parse_args()
    worst = right = total = 0
    for case in CASES:
        if options.only not in case.program:
            continue
        started = time.monotonic()
        told = marks(case, carry_out(case, seeds=options.seeds).diagnosis)
        worst += sum("WRONGLY" in word for word in told.values())
        right += sum(told[c] == "confirmed" for c in case.right)
        total += len(case.right)
        took = time.monotonic() - started
        print(
            f"{case.program:22} {took:5.0f} s  " + "; ".join(f"{c}: {m}" for c, m in told.items())
        )
        sys.stdout.flush()
    print(f"\n{right} of {total} injected causes confirmed; wrong verdicts: {worst}")
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
