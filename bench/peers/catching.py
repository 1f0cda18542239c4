"""Each peer as its documentation says, and how it expresses an alarm.

- torchfix: `torchfix .`; every line with a rule's code.
- mldoct: the linter behind `mldoctor check`; WARNING, ERROR and CRITICAL (its `diagnose` wants a
  table with a validation loss at every step and is left out).
- runmedic: `runmedic diagnose log.txt --json` on the run's own output; warning and critical. It
  says its title and the likely cause that it puts first; the other causes and fixes are advice.
- trainproof, trainpulse, training-doctor: their command on loss, rate and gradient norm of every
  step, written by the one line per step that their pages show; WARN and FAIL, warning and critical.
- torcheck: it raises (its checks of outputs are left out where a model gives no single tensor).
- torch-audit: WARN and worse. torchmortem: WARNING and CRITICAL, and its insights.
- DebugUnderflowOverflow and `detect_anomaly`: they raise, or warn of the operation.
- TrainCheck: every invariant of the program without the fault that its checker finds violated.
- traindx: its root causes, from the recording of the same run.

A run that ends before its first step, or prints nothing that a reader of logs can read, leaves such
a tool silent; that counts as missed, not as out of its reach.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.accuracy.incidents import WHOLE
from bench.peers import traincheck_catching
from bench.peers.cases import (
    Answer,
    Case,
    Failed,
    folder_of,
    must_end_as_before,
    raised_in,
    run_with,
)
from bench.peers.environments import Peer
from bench.peers.insertion import NotApplicable
from bench.peers.verdicts import Alarm
from traindx import TraindxError, diagnose, open_run

PROGRAMS_NEED = ("numpy", "scikit-learn", "pyyaml", "tqdm")
OFFLINE_S = 120.0
LINT_LINE = re.compile(r"^\S+?:\d+:\d+: (TOR\d+)(?: \[\*\])? (.*)$", re.MULTILINE)
ANOMALY = re.compile(r"Function '\w+' returned nan values[^\n]*|Error detected in \w+[^\n]*")
MLDOCT = "import json,sys;from mldoctor.linter import lint_script;"
MLDOCT += "print(json.dumps([x for p in sys.argv[1:] for x in lint_script(p)[0]]))"
DOCTOR = "import json,sys;from training_doctor import Doctor;"
DOCTOR += "print(json.dumps([d.to_dict() for d in Doctor().load(sys.argv[1]).analyze()]))"

Look = Callable[[Path, Case], list[Alarm]]


@dataclass(frozen=True, slots=True)
class Catcher:
    """A peer, where it lives, how it is used, and what it says of a program."""

    name: str
    used: str
    look: Look
    package: str
    environment: Peer | None = None  # none: the environment of this repository


def _ask(command: list[str], codes: tuple[int, ...] = (0,)) -> str:
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=OFFLINE_S
        )
    except subprocess.TimeoutExpired:
        raise Failed("took too long") from None
    if ran.returncode not in codes:
        told = (ran.stderr or ran.stdout).strip().splitlines() or ["it failed without a word"]
        raise Failed(re.sub(r"/\S+/", "", told[-1])[:160])
    return ran.stdout


def _torchfix(python: Path, wanted: Case) -> list[Alarm]:
    told = _ask([str(python), "-m", "torchfix", str(wanted.incident.folder / "project")])
    return [Alarm(code, says) for code, says in LINT_LINE.findall(told)]


def _mldoct(python: Path, wanted: Case) -> list[Alarm]:
    scripts = sorted(str(p) for p in (wanted.incident.folder / "project").rglob("*.py"))
    found = json.loads(_ask([str(python), "-c", MLDOCT, *scripts]))
    bad = [f for f in found if f["severity"] in ("WARNING", "ERROR", "CRITICAL")]
    return [Alarm(f["type"], f["message"], f["fix"]) for f in bad]


def _runmedic(python: Path, wanted: Case) -> list[Alarm]:
    log = wanted.incident.folder / "artifacts" / "log.txt"
    command = [str(python), "-m", "runmedic", "diagnose", str(log), "--json"]
    try:
        told = json.loads(_ask(command))
    except Failed as failure:
        if "no training metrics" in str(failure):
            return []
        raise
    return [
        Alarm(
            f"{f['check']} {f['title'].split()[0]}",
            "\n".join([f["title"], *f["likely_causes"][:1]]),
            "\n".join([*f["evidence"], *f["likely_causes"], *f["fixes"]]),
        )
        for run in told
        for f in run["findings"]
        if f["severity"] in ("critical", "warning")
    ]


def _metrics(wanted: Case, suffix: str) -> Iterator[Path]:
    """Yield the numbers of every step, measured once for all who want them; none without a step."""
    folder = folder_of("metrics", wanted)
    if not (folder / "output.txt").exists():
        ran = run_with("metrics", Path(sys.executable), wanted)
        try:
            must_end_as_before(ran, wanted)
        except Failed:
            shutil.rmtree(folder)  # or the next who wants them takes half a run for a whole one
            raise
    yield from sorted(folder.glob(f"*{suffix}"))


def _trainproof(python: Path, wanted: Case) -> list[Alarm]:
    alarms = []
    for path in _metrics(wanted, ".jsonl"):
        command = [str(python), "-m", "trainproof", "doctor", str(path), "--json"]
        told = json.loads(_ask(command, codes=(0, 1, 2)))  # 2: too little to judge
        for report in told["reports"]:
            bad = [f for f in report["findings"] if f["level"] in ("WARN", "FAIL")]
            alarms += [Alarm(f["id"], f["message"], str(f.get("evidence", ""))) for f in bad]
    return alarms


def _trainpulse(python: Path, wanted: Case) -> list[Alarm]:
    alarms = []
    for path in _metrics(wanted, ".jsonl"):
        report = path.with_suffix(".report")
        command = [str(python), "-m", "trainpulse.cli", "analyze", str(path)]
        _ask([*command, "--json-out", str(report)])
        for alert in json.loads(report.read_text(encoding="utf-8"))["alerts"]:
            if alert["severity"] in ("warning", "critical"):
                rule = f"{alert['detector']} {alert.get('metric_name', '')}"
                alarms.append(Alarm(rule, alert["message"]))
    return alarms


def _training_doctor(python: Path, wanted: Case) -> list[Alarm]:
    alarms = []
    for path in _metrics(wanted, ".csv"):
        for found in json.loads(_ask([str(python), "-c", DOCTOR, str(path)])):
            if found["severity"] in ("warning", "critical"):
                says = f"{found['problem']}. {found['explanation']}"
                alarms.append(Alarm(found["problem"], says, "\n".join(found["suggestions"])))
    return alarms


def _hooked(peer: str, package: str) -> Look:
    def look(python: Path, wanted: Case) -> list[Alarm]:
        ran = _ran(peer, python, wanted)
        failure = raised_in(ran.output, f"site-packages/{package}")
        if failure or ran.failures:
            told = (failure or ran.failures[0]).strip().splitlines()[-1]
            raise Failed(told[:160])
        must_end_as_before(ran, wanted)
        return [Alarm(a["rule"], a["says"], a["adds"]) for a in ran.alarms]

    return look


def _ran(peer: str, python: Path, wanted: Case) -> Answer:
    ran = run_with(peer, python, wanted)
    shutil.rmtree(ran.folder)
    if ran.code is None:
        raise Failed("the program did not end in time with it")
    return ran


def _torcheck(python: Path, wanted: Case) -> list[Alarm]:
    ran = _ran("torcheck", python, wanted)
    if raised_in(ran.output, "torcheck/output_spec.py").startswith("TypeError"):
        ran = _ran("torcheck_parameters", python, wanted)
    told = raised_in(ran.output, "site-packages/torcheck/")
    if not told:
        must_end_as_before(ran, wanted)
    if told and not told.startswith("RuntimeError"):
        raise Failed(told.splitlines()[0][:160])
    says = [x for x in told.splitlines() if "errors are detected while training" not in x]
    return [Alarm("", x.removeprefix("RuntimeError: ")) for x in says]


def _underflow(python: Path, wanted: Case) -> list[Alarm]:
    ran = _ran("underflow", python, wanted)
    told = raised_in(ran.output, "transformers/debug_utils.py")
    if not told:
        must_end_as_before(ran, wanted)
    if told and "inf/nan" not in told:
        raise Failed(told.splitlines()[0][:160])
    return [Alarm("inf/nan", told)] if told else []


def _anomaly(python: Path, wanted: Case) -> list[Alarm]:
    ran = _ran("anomaly", python, wanted)
    found = dict.fromkeys(ANOMALY.findall(ran.output))
    if not found:
        must_end_as_before(ran, wanted)
    return [Alarm("", says) for says in found]


def _traindx(_: Path, wanted: Case) -> list[Alarm]:
    paths = wanted.incident.paths(WHOLE)
    if not paths:
        raise NotApplicable("no recording of it yet")
    try:
        found = diagnose(open_run(*paths))
    except TraindxError as error:
        raise Failed(str(error)[:160]) from error
    return [Alarm(h.cause, h.cause, causes=(h.cause,)) for h in found.root_causes]


def _small(name: str, *packages: str) -> Peer:
    return Peer(name, f"{name.replace('-', '_')}_way", packages or (name,), needs_torch=False)


STEPS = "its command on loss, rate and gradient norm of every step"
CATCHERS = (
    Catcher("traindx", "recording of the run", _traindx, "traindx"),
    Catcher("torcheck", "checks of its README", _torcheck, "torcheck",
            Peer("torcheck", "torcheck_way", ("numpy", "setuptools<81"), ("torcheck",))),
    Catcher("torch-audit", "`autopatch`, every step", _hooked("torch_audit", "torch_audit/"),
            "torch-audit", Peer("torch-audit", "torch_audit_way", ("torch-audit",))),
    Catcher("torchmortem", "`Autopsy`", _hooked("torchmortem", "torchmortem/"), "torchmortem",
            Peer("torchmortem", "torchmortem_way", ("torchmortem",))),
    Catcher("TrainCheck", "invariants of one reference run, its offline checker",
            traincheck_catching.look, "traincheck",
            Peer("TrainCheck", "traincheck_way", ("traincheck",))),
    Catcher("mldoct", "`mldoctor check`", _mldoct, "mldoct", _small("mldoct")),
    Catcher("torchfix", "`torchfix .`", _torchfix, "torchfix", _small("torchfix")),
    Catcher("runmedic", "`diagnose log.txt`", _runmedic, "runmedic", _small("runmedic")),
    Catcher("trainproof", STEPS, _trainproof, "trainproof", _small("trainproof")),
    Catcher("trainpulse", STEPS, _trainpulse, "trainpulse",
            _small("trainpulse", "trainpulse[cli]")),
    Catcher("training-doctor", STEPS, _training_doctor, "training-doctor",
            _small("training-doctor")),
    Catcher("DebugUnderflowOverflow", "on the model", _underflow, "transformers"),
    Catcher("detect_anomaly", "for the whole run", _anomaly, "torch"),
)  # fmt: skip

SKIPPED = {
    "smdebug": "the package has no rules, only the class to write them with; measured "
    "for overhead only",
    "Cockpit": "draws instruments and raises no alarm; measured for overhead only",
    "TraceML": "judges speed and memory, which few of these faults touch, and by the clock, which "
    "a shared machine falsifies; measured for overhead only",
}
