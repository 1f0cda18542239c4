"""Real training programs under the recorder: the fault is found, and the healthy are left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.programs import PROGRAMS, Case, cases, judge, record, verdict
from forking import fork_each

from traindx import diagnose, open_run
from traindx.evidence import Status

# These do not fork well, or need imports of their own.
APART = ("lightning", "hf_", "accelerate", "compiled", "workers")
OPEN: frozenset[str] = (
    frozenset()
)  # faults that are not found yet; a program of these may not alarm


def told(case: Case) -> str:
    return ":".join((case.program, *case.arguments))


def forked(tmp_path: Path, chosen: Sequence[Case], **how: str) -> list[tuple[Case, Path]]:
    fork_each(tmp_path, [told(c) for c in chosen], **how)
    return [(c, tmp_path / c.name.replace(" ", "-")) for c in chosen]


def plain(condition: Callable[[Case], bool]) -> list[Case]:
    return [
        c for c in cases() if condition(c) and not c.launcher and not c.program.startswith(APART)
    ]


def alarms(case: Case, folder: Path) -> list[str]:
    """Return what is wrong with the diagnosis of a healthy program, with its source or without."""
    found = []
    for diagnosis in (
        judge(folder, is_bare=True),
        diagnose(open_run(folder, PROGRAMS / case.program)),
    ):
        found += [f"{case.name}: {h.cause} {h.confidence:.2f}" for h in diagnosis.root_causes]
        found += [f"{case.name}: {f.detector} failed: {f.error}" for f in diagnosis.failed]
        if diagnosis.status is not Status.HEALTHY:
            found.append(f"{case.name}: {diagnosis.status.value}: {diagnosis.summary}")
    return found


def misses(case: Case, folder: Path) -> list[str]:
    """Return what is wrong with the diagnosis of a faulty program from its records alone."""
    diagnosis = judge(folder, is_bare=True)
    outcome = verdict(case, diagnosis)
    right = ("found", "MISSED") if case.name in OPEN else ("found",)
    causes = [f"{h.cause} {h.confidence:.2f}" for h in diagnosis.root_causes]
    failed = [f"{case.name}: {f.detector} failed: {f.error}" for f in diagnosis.failed]
    return failed + ([] if outcome in right else [f"{case.name}: {outcome}: {causes}"])


def test_healthy_programs_raise_no_alarm(tmp_path: Path) -> None:
    chosen = plain(lambda c: not c.causes)
    assert len(chosen) > 30
    assert [a for c, f in forked(tmp_path, chosen) for a in alarms(c, f)] == []


def test_faults_are_the_first_root_cause_by_the_records_alone(tmp_path: Path) -> None:
    chosen = plain(lambda c: bool(c.causes))
    assert len(chosen) > 30
    assert [m for c, f in forked(tmp_path, chosen) for m in misses(c, f)] == []


def framework(tmp_path: Path, prefix: str, modules: str) -> list[str]:
    chosen = [c for c in cases() if c.program.startswith(prefix)]
    assert len({bool(c.causes) for c in chosen}) == 2
    pairs = forked(tmp_path, chosen, modules=modules)
    return [p for c, f in pairs for p in (misses if c.causes else alarms)(c, f)]


def test_lightning(tmp_path: Path) -> None:
    assert framework(tmp_path, "lightning", "torch,torch._dynamo,lightning") == []


def test_the_trainer_of_transformers(tmp_path: Path) -> None:
    modules = "torch,torch._dynamo,accelerate,transformers.trainer"
    assert framework(tmp_path, "hf_", modules) == []


def test_accelerate(tmp_path: Path) -> None:
    assert framework(tmp_path, "accelerate", "torch,torch._dynamo,accelerate") == []


def test_compiled_models(tmp_path: Path) -> None:
    assert framework(tmp_path, "compiled", "torch,torch._dynamo") == []


def distributed(tmp_path: Path, program: str) -> list[str]:
    [case] = [c for c in cases() if c.program == program]
    ran = record(case, tmp_path / program)
    assert ran.exit_code == 0, ran.errors
    diagnosis = diagnose(open_run(tmp_path / program))
    assert not diagnosis.failed
    return [h.cause for h in diagnosis.root_causes]


def test_sharded_ranks_raise_no_alarm(tmp_path: Path) -> None:
    assert distributed(tmp_path, "fsdp.py") == []


def test_ranks_that_read_the_same_data(tmp_path: Path) -> None:
    assert distributed(tmp_path, "no_sampler.py")[:1] == ["missing-distributed-sampler"]
