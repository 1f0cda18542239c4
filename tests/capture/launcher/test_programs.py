"""Real training programs under the recorder: the fault is found, and the healthy are left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.programs import PROGRAMS, Case, cases, judge, record, verdict
from forking import differences, fork_each

from traindx import diagnose, open_run
from traindx.model.findings import Status

# These do not fork well, or need imports of their own.
APART = ("lightning", "hf_", "accelerate", "compiled", "workers")
# What is not right yet: these are run, and must not crash a detector.
OPEN = {
    "frozen_all": "the exception does not tell a frozen model from a detached loss",
    "hf_faults frozen": "one bias is left to train",
    "running_loss": "backward has freed what the graph held: nothing grows that could be measured",
    "lightning_faults only-head": "may be meant",
    "compiled_faults softmax": "a compiled graph is opaque",
}


def told(case: Case) -> str:
    return ":".join((case.program, *case.arguments))


# sound, and too short to be seen to learn, or with one number a fold: no clean bill is given
UNSEEN = {"maml", "tagging", "cross_validation"}


def forked(tmp_path: Path, chosen: Sequence[Case], **how: str) -> list[tuple[Case, Path]]:
    fork_each(tmp_path, [told(c) for c in chosen], **how)
    return [(c, tmp_path / c.name.replace(" ", "-")) for c in chosen]


def alone(condition: Callable[[Case], bool]) -> list[Case]:
    return [
        c for c in cases() if condition(c) and not c.launcher and not c.program.startswith(APART)
    ]


def wrongs(case: Case, folder: Path) -> list[str]:
    """Return what is wrong with a diagnosis: of a faulty program, from its records alone."""
    if case.causes:
        diagnosis = judge(folder, is_bare=True)
    else:
        diagnosis = diagnose(open_run(folder, PROGRAMS / case.program))
    found = [f"{case.name}: {f.detector} failed: {f.error}" for f in diagnosis.failed]
    outcome = verdict(case, diagnosis)
    fair = (Status.HEALTHY, Status.INSUFFICIENT) if case.name in UNSEEN else (Status.HEALTHY,)
    is_fair = diagnosis.status in fair and not diagnosis.root_causes
    is_right = outcome == "found" if case.causes else is_fair
    if not is_right and case.name not in OPEN:
        causes = [f"{h.cause} {h.confidence:.2f}" for h in diagnosis.root_causes]
        found.append(f"{case.name}: {outcome}: {causes or diagnosis.summary}")
    return found


def test_healthy_programs_raise_no_alarm(tmp_path: Path) -> None:
    chosen = alone(lambda c: not c.causes)
    assert len(chosen) > 30
    assert [a for c, f in forked(tmp_path, chosen) for a in wrongs(c, f)] == []


def test_faults_are_the_first_root_cause_by_the_records_alone(tmp_path: Path) -> None:
    chosen = alone(lambda c: bool(c.causes))
    assert len(chosen) > 30
    assert [m for c, f in forked(tmp_path, chosen) for m in wrongs(c, f)] == []


def framework(tmp_path: Path, prefix: str, modules: str) -> list[str]:
    """Run the programs of a framework, and the first one, which is healthy, unrecorded as well."""
    chosen = [c for c in cases() if c.program.startswith(prefix) and c.arguments != ("inductor",)]
    assert not chosen[0].causes and chosen[-1].causes
    plain, recorded = tmp_path / "plain", tmp_path / "recorded"
    fork_each(plain, [told(chosen[0])], modules=modules, is_recorded=False)
    pairs = forked(recorded, chosen, modules=modules)
    return differences(plain, recorded) + [w for c, f in pairs for w in wrongs(c, f)]


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
