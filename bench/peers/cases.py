"""The programs that the peers are tried on, and running one of them with a peer in place."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.accuracy.incidents import CORPUS, Incident, incidents
from bench.corpus.program import SEEDED_AS, programs
from bench.corpus.runs import surroundings
from bench.peers.environments import CACHE
from bench.peers.insertion import inserted

INSIDE = Path(__file__).parent / "inside"
WORK = CACHE / "work"
TIMEOUT_S = 420.0  # the heaviest of them slows a program of seconds down fiftyfold
FAULTY = 0.6
EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception))\b(.*)$", re.MULTILINE)
FILE_LINE = re.compile(r'^\s*File "([^"]+)", line \d+', re.MULTILINE)


class Failed(Exception):
    """A peer did not do its work, and why."""


@dataclass(frozen=True, slots=True)
class Case:
    """An incident with the program it was made from."""

    incident: Incident
    seed: int
    original: Mapping[str, str]

    @property
    def files(self) -> dict[str, str]:
        folder = self.incident.folder / "project"
        return {
            str(p.relative_to(folder)): p.read_text(encoding="utf-8")
            for p in sorted(folder.rglob("*"))
            if p.is_file() and p.suffix in (".py", ".yaml", ".toml", ".json", ".txt")
        }

    @property
    def digest(self) -> str:
        told = hashlib.sha256(f"{self.seed}".encode())
        for path, text in sorted(self.files.items()):
            told.update(f"\0{path}\0{text}".encode())
        return told.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program left that ran with a peer inside."""

    code: int | None
    output: str
    alarms: tuple[Mapping[str, str], ...]
    failures: tuple[str, ...]
    folder: Path


def sample(half: str, size: int, corpus: Path = CORPUS) -> list[Case]:
    """Choose plain single-process programs by seed: three in five faulty, each of another cause.

    Most peers support nothing but a plain loop in one process.
    """
    found = [i for i in incidents(half, corpus) if _is_plain(i)]
    random.Random(f"peers {SEEDED_AS.get(half, half)}").shuffle(found)
    faulty = _spread([i for i in found if not i.is_healthy], round(size * FAULTY))
    healthy = _spread([i for i in found if i.is_healthy], size - len(faulty))
    return [case(i, half) for i in (*faulty, *healthy)]


def _is_plain(incident: Incident) -> bool:
    label = json.loads((incident.folder / "label.json").read_text(encoding="utf-8"))
    return (
        incident.framework == "plain"
        and label.get("ranks", 1) == 1
        and label.get("command") == "python train.py"
        and (incident.folder / "artifacts" / "log.txt").exists()
    )


def _spread(ready: Sequence[Incident], size: int) -> list[Incident]:
    """Take incidents one by one, each time of the cause, family, kind and program least used."""
    left = list(ready)
    taken: list[Incident] = []
    used: dict[str, int] = {}

    def keys(incident: Incident) -> tuple[str, ...]:
        kind = "weak" if incident.is_weak_fault else incident.operator
        return (
            f"cause {incident.cause or kind}",
            f"family {incident.family}",
            f"program {incident.program}",
        )

    while left and len(taken) < size:
        best = min(left, key=lambda i: tuple(used.get(k, 0) for k in keys(i)))
        left.remove(best)
        taken.append(best)
        for key in keys(best):
            used[key] = used.get(key, 0) + 1
    return taken


def case(incident: Incident, half: str) -> Case:
    """Return an incident with its seed and its program as it was."""
    label = json.loads((incident.folder / "label.json").read_text(encoding="utf-8"))
    program = next(p for p in programs(half) if p.name == incident.program)
    return Case(incident, int(label.get("seed", 0)), program.files)


def original_of(wanted: Case, half: str, corpus: Path = CORPUS) -> Case | None:
    """Return the run of the same program without a fault."""
    name = f"{wanted.incident.program}--as-it-is-0"
    found = [i for i in incidents(half, corpus) if i.name == name]
    return case(found[0], half) if found else None


def folder_of(peer: str, wanted: Case) -> Path:
    """Return where a run with a peer inside leaves what it leaves."""
    return WORK / peer / wanted.digest


def run_with(peer: str, python: Path, wanted: Case) -> Answer:
    """Run a copy of a program with a peer's lines in it."""
    folder = folder_of(peer, wanted)
    shutil.rmtree(folder, ignore_errors=True)
    project = folder / "project"
    for path, text in inserted(wanted.files, wanted.original).items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text, encoding="utf-8")
    shutil.copy(INSIDE / "watch.py", project / "peer_watch.py")
    shutil.copy(INSIDE / f"{peer}_inside.py", project / "peer_inside.py")
    answer = folder / "answer.json"
    environment = {**os.environ, **surroundings(wanted.seed), "PEER_ANSWER": str(answer)}
    environment.pop("PYTHONPATH", None)
    output = folder / "output.txt"
    with output.open("w") as file:
        code = wait([str(python), "train.py"], project, environment, file.fileno())
    told = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {}
    shutil.rmtree(project)
    return Answer(
        code,
        output.read_text(encoding="utf-8", errors="replace"),
        tuple(told.get("alarms", ())),
        tuple(told.get("failures", ())),
        folder,
    )


def wait(
    command: list[str],
    folder: Path,
    environment: dict[str, str],
    output: int,
    timeout_s: float = TIMEOUT_S,
) -> int | None:
    """Run a command in a session of its own; no code means that it took too long."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def must_end_as_before(ran: Answer, wanted: Case) -> None:
    """Raise if a program ends otherwise than it does without the peer."""
    if ran.code == 0:
        return
    raised = EXCEPTION.findall(ran.output)
    usual = EXCEPTION.findall((wanted.incident.folder / "artifacts" / "log.txt").read_text())
    if not wanted.incident.crashed or (raised and usual and raised[-1][0] != usual[-1][0]):
        told = "".join(raised[-1]) if raised else f"exit code {ran.code}"
        raise Failed(f"the program crashes with it: {told}"[:160])


def raised_in(output: str, package: str) -> str:
    """Return the message of the exception that ended a program, if a package raised it."""
    at = output.rfind("Traceback (most recent call last)")
    places = list(FILE_LINE.finditer(output, at)) if at >= 0 else []
    if not places or f"/{package}" not in places[-1].group(1):
        return ""
    rest = output[places[-1].end() :].splitlines()[1:]  # after `, in function`
    told = next((n for n, line in enumerate(rest) if line and not line[0].isspace()), 0)
    return "\n".join(x for x in rest[told:] if x.strip())[:2000]
