"""TrainCheck as its guide says: invariants of a reference run, checked on the run in question.

The reference is the program without the fault, with a seed that no incident has; its invariants
are inferred once for each program. Both runs go to their end and are traced in part: the guide
advises about ten iterations, which its own options for sampling allow. An alarm is an invariant
that the checker found violated, in the words of its summary.

In those steps the run in question is traced with all its calls, as the tutorial does. The README
traces only what the invariants need (`--invariants`), but then events are missing that other
invariants count on: on one untouched program 24 of 690 were violated that way, 4 with all calls.
Those 4 are left out: they compare with a value that the tool writes and cannot read again.

Time is bounded by that of the processor, for the clock also runs while others use the machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from bench.corpus.runs import surroundings
from bench.peers.cases import WORK, Answer, Case, Failed, folder_of, must_end_as_before, wait
from bench.peers.insertion import NotApplicable, tracked_models
from bench.peers.verdicts import NUMBERS, Alarm

REFERENCE_SEED = 101  # of no incident: else a program would be checked against itself
SAMPLED = ("--warm-up-steps", "10", "--sampling-interval", "50")
COLLECT_S, INFER_S, CHECK_S = 150, 300, 150
CLOCK_PER_CPU = 12.0  # that long only if it hangs
UNREADABLE = "NOT SERIALIZABLE"  # it writes such a value and cannot read it: no run fulfils that
LATE = "did not end in time"
ABSENT = re.compile(r"^(\S+\(\)) always occurs when ")  # violated, it says that a call is missing
LIMITED = ("/bin/sh", "-c", 'ulimit -S -t "$0"; exec "$@"')
LOCKS: dict[str, Lock] = {}


@dataclass(frozen=True, slots=True)
class Tool:
    """The commands of TrainCheck in its environment, at work in one folder."""

    python: Path
    folder: Path

    def collect(self, files: Mapping[str, str], seed: int, models: tuple[str, ...]) -> Answer:
        """Run a program under the collector; its trace comes to be in the folder."""
        project, trace = self.folder / "project", self.folder / "trace"
        for path, text in files.items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(text, encoding="utf-8")
        told = self._run(
            COLLECT_S, seed, "collect", "--pyscript", str(project / "train.py"),
            "--copy-all-files", "--models-to-track", *models, *SAMPLED,
            "--output-dir", str(trace),
        )  # fmt: skip
        printed = trace / "program_output.txt"
        if not printed.exists():
            raise Failed(_last_line(told) if told.code is not None else f"its collector {LATE}")
        output = printed.read_text(encoding="utf-8", errors="replace")
        if output.endswith(f"code -{int(signal.SIGXCPU)}"):
            raise Failed(f"the program {LATE} with it")
        return Answer(told.code, output, (), (), self.folder)

    def infer(self, kept: Path) -> None:
        """Infer invariants from the trace in the folder."""
        made = self.folder / "invariants.json"
        told = self._run(INFER_S, 0, "infer", "-f", str(self.folder / "trace"), "-o", str(made))
        if told.code is None:
            raise Failed(f"the inference of invariants {LATE}")
        if told.code or not made.exists():
            raise Failed(_last_line(told))
        made.replace(kept)

    def check(self, invariants: Path) -> list[Alarm]:
        """Check the trace in the folder."""
        result = self.folder / "result"
        told = self._run(
            CHECK_S, 0, "check", "-f", str(self.folder / "trace"), "-i", str(invariants),
            "-o", str(result), "--no-html-report",
        )  # fmt: skip
        if told.code is None:
            raise Failed(f"its checker {LATE}")
        summary = result / "trace" / "violations_summary.json"
        if told.code or not summary.exists():
            raise Failed(_last_line(told))
        return alarms_of(summary.read_text(encoding="utf-8"))

    def _run(self, seconds: int, seed: int, name: str, *arguments: str) -> Answer:
        command = [*LIMITED, str(seconds), str(self.python.with_name(f"traincheck-{name}"))]
        environment = {**os.environ, **surroundings(seed)}
        environment.pop("PYTHONPATH", None)
        printed = self.folder / f"{name}.txt"
        with printed.open("w") as file:
            code = wait(
                [*command, *arguments],
                self.folder,
                environment,
                file.fileno(),
                seconds * CLOCK_PER_CPU,
            )
        output = printed.read_text(encoding="utf-8", errors="replace")
        late = code is not None and code in (-signal.SIGXCPU, -signal.SIGKILL)
        return Answer(None if late else code, output, (), (), self.folder)


def look(python: Path, wanted: Case) -> list[Alarm]:
    """Return the invariants of the program without the fault that a run violates."""
    models = tracked_models(wanted.original)
    if not models:
        raise NotApplicable("no variable of the script holds the model")
    if wanted.seed == REFERENCE_SEED:
        raise NotApplicable("the run has the seed of the reference")
    invariants = _invariants(python, wanted.original, models)
    tool = _at_work(python, folder_of("traincheck", wanted))
    try:
        ran = tool.collect(wanted.files, wanted.seed, models)
        must_end_as_before(ran, wanted)
        if not any((tool.folder / "trace").glob("trace_*")):
            return []  # it ended before anything could be traced
        return tool.check(invariants)
    finally:
        shutil.rmtree(tool.folder)


def alarms_of(summary: str) -> list[Alarm]:
    """Return the violated invariants of a checker's summary, but those that no run can fulfil."""
    alarms = []
    for violation in json.loads(summary)["violations"]:
        says, relation = str(violation["display_name"]), str(violation["relation_type"])
        if UNREADABLE not in says:
            rule = f"{relation}: {NUMBERS.sub('#', says)}"
            alarms.append(Alarm(rule, ABSENT.sub(r"missing \1, which always occurs when ", says)))
    return alarms


def _invariants(python: Path, original: Mapping[str, str], models: tuple[str, ...]) -> Path:
    """Return the invariants of a program, inferred once; a failure is remembered, too."""
    digest = hashlib.sha256(json.dumps([*sorted(original.items()), SAMPLED]).encode()).hexdigest()
    home = WORK / "traincheck" / f"reference-{digest[:16]}"
    kept, failed = home / "kept.json", home / "failed.txt"
    with LOCKS.setdefault(digest, Lock()):
        if failed.exists():
            raise Failed(failed.read_text(encoding="utf-8"))
        if kept.exists():
            return kept
        tool = _at_work(python, home / "work")
        try:
            ran = tool.collect(original, REFERENCE_SEED, models)
            if ran.code != 0:
                raise Failed(f"the program without the fault crashes with it: {_last_line(ran)}")
            tool.infer(kept)
        except Failed as failure:
            failed.write_text(f"reference run: {failure}"[:160], encoding="utf-8")
            raise Failed(failed.read_text(encoding="utf-8")) from None
        finally:
            shutil.rmtree(tool.folder)
        return kept


def _at_work(python: Path, folder: Path) -> Tool:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return Tool(python, folder)


def _last_line(told: Answer) -> str:
    lines = [x for x in told.output.splitlines() if x.strip() and "exited with" not in x]
    return lines[-1][:160] if lines else "it failed without a word"
