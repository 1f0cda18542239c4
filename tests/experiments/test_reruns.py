"""Programs with a fault, rerun for real: the cause is confirmed, the wrong idea is refuted."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from bench.experiments import CASES, Case, carry_out, marks
from tests.experiments.arms import diagnosis, finding, hypothesis, make_run

from traindx.experiments.sandbox.workshop import Workshop
from traindx.experiments.verification.request import VerifyRequest
from traindx.experiments.verification.verification import verify
from traindx.model.findings import Verdict

PROGRAMS = Path(__file__).parent / "programs"
QUICK = ("seed_shape", "seed_in_place", "nan_in_data", "stale_optimizer", "two_reasons", "healthy")


@pytest.mark.parametrize("case", [c for c in CASES if c.program in QUICK], ids=lambda c: c.program)
def test_a_fault_is_confirmed_and_a_wrong_idea_is_not(case: Case) -> None:
    found = carry_out(case, seeds=1)
    told = marks(case, found.diagnosis)
    assert [told[c] for c in case.right] == ["confirmed"] * len(case.right), told
    wrong = {told.get(f"not {c}") for c in case.wrong}
    assert wrong <= ({"refuted"} if case.right else {"undecided", "refuted"}), told
    confirmed = {h.cause for h in found.diagnosis.hypotheses if h.confirmed}
    assert confirmed == set(case.right)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("asks", "asks for input"),
        ("needs_data", "data that it reads is not there"),
        ("sets_up", "passed before the first step"),
    ],
)
def test_a_program_that_cannot_be_rerun_is_recognised(
    program: str, says: str, tmp_path: Path
) -> None:
    shutil.copy(PROGRAMS / f"{program}.py", tmp_path / "train.py")
    gone = os.fspath(tmp_path / "gone.pt")
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "TRAINING_DATA": gone}
    broken = make_run(np.append(np.ones(20), np.full(40, np.nan)))
    rate = hypothesis("lr-too-high", finding("nan-or-inf-loss", "lr-too-high"))
    max_time_s = 8.0 if program == "sets_up" else 600.0
    with Workshop([sys.executable, "train.py"], tmp_path, environ) as workshop:
        found = verify(broken, diagnosis(rate), workshop, VerifyRequest(max_time_s=max_time_s))
    (experiment,) = found.diagnosis.experiments
    assert experiment.verdict is Verdict.UNDECIDED
    assert says in experiment.reason
