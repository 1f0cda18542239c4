"""TrainCheck as a peer: its summary as alarms, its reference, and what bounds its time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.accuracy.incidents import Incident
from bench.corpus.program import programs
from bench.peers import traincheck_catching
from bench.peers.cases import Case, Failed
from bench.peers.insertion import NotApplicable, tracked_models
from bench.peers.naming import names
from bench.peers.traincheck_catching import REFERENCE_SEED, alarms_of, look
from bench.peers.verdicts import distinct

SCRIPT = """import torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in range(3):
    opt.zero_grad()
    loss = net(torch.ones(1, 2)).sum()
    loss.backward()
    opt.step()
"""
SUMMARY = {
    "first_violation_step": 2,
    "distinct_invariants_violated": 3,
    "violations": [
        {
            "display_name": "Optimizer.zero_grad() always precedes Adam.step()",
            "relation_type": "FunctionLeadRelation",
            "first_step": 2,
            "last_step": 40,
            "occurrences": 1,
        },
        {
            "display_name": "Linear.forward() consistently returns tensors with nbytes=2560",
            "relation_type": "ConsistentOutputRelation",
            "first_step": None,
            "last_step": None,
            "occurrences": 1,
        },
        {
            "display_name": "Linear.forward() consistently returns tensors with nbytes=5120",
            "relation_type": "ConsistentOutputRelation",
            "first_step": 4,
            "last_step": 4,
            "occurrences": 1,
        },
    ],
}
# Stands for the three commands: it obeys the options that the real ones are given.
FAKE = """#!/bin/sh
echo "$(basename "$0") $SEED $*" >> "$(dirname "$0")/asked.txt"
case "$(basename "$0")" in
traincheck-collect)
    while [ "$1" != --output-dir ]; do shift; done
    mkdir -p "$2"; echo "{}" > "$2/trace_API_1.log"; COLLECTED ;;
traincheck-infer) while [ "$1" != -o ]; do shift; done; echo "{}" > "$2" ;;
traincheck-check)
    while [ "$1" != -o ]; do shift; done
    mkdir -p "$2/trace"; cp "$(dirname "$0")/summary.json" "$2/trace/violations_summary.json" ;;
esac
"""
ENDED = 'printf "done\\n\\nProgram exited with code 0" > "$2/program_output.txt"'
LATE = 'printf "\\n\\nProgram exited with code -24" > "$2/program_output.txt"; exit 232'
BROKEN = 'echo "ValueError: Model net not found in the source code."; exit 1'


def fake(folder: Path, collected: str) -> Path:
    folder.mkdir()
    for name in ("collect", "infer", "check"):
        command = folder / f"traincheck-{name}"
        command.write_text(FAKE.replace("COLLECTED", collected), encoding="utf-8")
        command.chmod(0o755)
    (folder / "summary.json").write_text(json.dumps(SUMMARY), encoding="utf-8")
    return folder / "python"


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr(traincheck_catching, "WORK", tmp_path / "work")
    monkeypatch.setattr("bench.peers.cases.WORK", tmp_path / "work")
    folder = tmp_path / "incident"
    (folder / "project").mkdir(parents=True)
    (folder / "artifacts").mkdir()
    (folder / "artifacts" / "log.txt").write_text("")
    faulty = SCRIPT.replace("    opt.zero_grad()\n", "")
    (folder / "project" / "train.py").write_text(faulty)
    found = Incident(
        name="a", half="develop", folder=folder, program="mlp", framework="plain",
        operator="some", strength="", injected="missing-zero-grad", cause="missing-zero-grad",
        accepted=frozenset({"missing-zero-grad"}), file="train.py", line=5, crashed=False,
    )  # fmt: skip
    return Case(found, 1, {"train.py": SCRIPT})


def test_violated_invariants_are_alarms() -> None:
    alarms = alarms_of(json.dumps(SUMMARY))
    assert (
        alarms[0].key == "FunctionLeadRelation: Optimizer.zero_grad() always precedes Adam.step()"
    )
    assert alarms[0].says == "Optimizer.zero_grad() always precedes Adam.step()"
    assert names(alarms[0].says, ["missing-zero-grad"])
    assert alarms[1].key == alarms[2].key
    assert len(distinct(alarms)) == 2


def test_call_that_does_not_occur_is_told_as_missing() -> None:
    told = {
        "display_name": "Adam.step() always occurs when Optimizer.zero_grad() is called",
        "relation_type": "FunctionCoverRelation",
    }
    alarm = alarms_of(json.dumps({"violations": [told]}))[0]
    assert alarm.says.startswith("missing Adam.step(), which always occurs when Optimizer.zero_")
    assert alarm.key == f"FunctionCoverRelation: {told['display_name']}"
    assert names(alarm.says, ["missing-optimizer-step"])


def test_no_violations_are_no_alarms() -> None:
    assert alarms_of('{"first_violation_step": null, "violations": []}') == []


def test_invariants_that_no_run_can_fulfil_are_left_out() -> None:
    broken = {
        "display_name": "ReLU.forward() consistently returns tensors with "
        "grad_fn=NOT SERIALIZABLE: <NA>",
        "relation_type": "ConsistentOutputRelation",
    }
    assert alarms_of(json.dumps({"violations": [broken]})) == []


def test_models_are_those_of_the_optimizers() -> None:
    assert tracked_models({"train.py": SCRIPT}) == ("net",)
    assert tracked_models({"train.py": "print(1)\n"}) == ()


def test_every_plain_program_has_a_model_to_track() -> None:
    plain = [p for p in programs("develop") if p.framework == "plain" and p.ranks == 1]
    assert all(tracked_models(p.files) for p in plain)


def test_reference_is_the_original_with_a_seed_of_its_own_and_made_once(
    case: Case, tmp_path: Path
) -> None:
    python = fake(tmp_path / "bin", ENDED)
    assert [a.key for a in look(python, case)] == [a.key for a in look(python, case)]
    asked = (tmp_path / "bin" / "asked.txt").read_text().splitlines()
    assert [x.split()[0] for x in asked] == [
        "traincheck-collect", "traincheck-infer", "traincheck-collect", "traincheck-check",
        "traincheck-collect", "traincheck-check",
    ]  # fmt: skip
    assert [x.split()[1] for x in asked if "collect" in x.split()[0]] == [
        str(REFERENCE_SEED), "1", "1",
    ]  # fmt: skip
    assert all("--models-to-track net" in x for x in asked if "collect" in x.split()[0])
    left = [p.name for p in (tmp_path / "work" / "traincheck").rglob("*") if p.is_file()]
    assert left == ["kept.json"]


def test_failure_of_the_reference_is_told_and_remembered(case: Case, tmp_path: Path) -> None:
    python = fake(tmp_path / "bin", BROKEN)
    for _ in range(2):
        with pytest.raises(Failed, match="reference run: ValueError: Model net not found"):
            look(python, case)
    assert len((tmp_path / "bin" / "asked.txt").read_text().splitlines()) == 1


def test_program_beyond_its_time_is_a_failure(case: Case, tmp_path: Path) -> None:
    with pytest.raises(Failed, match="the program did not end in time"):
        look(fake(tmp_path / "bin", LATE), case)


def test_script_without_a_model_is_not_applicable(case: Case, tmp_path: Path) -> None:
    other = Case(case.incident, 1, {"train.py": "print(1)\n"})
    with pytest.raises(NotApplicable, match="no variable"):
        look(tmp_path / "python", other)
