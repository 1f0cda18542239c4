"""Opening artifacts: each is recognised, read and merged into one run; nothing is lost silently."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from traindx.errors import TraindxError, UnreadableArtifact
from traindx.model.merging import merge_runs, recorded_paths, resolve
from traindx.model.metric_names import phase_of
from traindx.model.run import Artifact, Config, Event, Run
from traindx.readers import deadline
from traindx.readers.folders import Search, latest, read_head, recognise, search, split_runs
from traindx.readers.formats.recording.recording_files import (
    are_parts_of_one_output,
    is_output,
    is_run_file,
)
from traindx.readers.package import Package, read_package
from traindx.readers.text import is_text
from traindx.registry import Reader, readers

NAMED = 0.1  # how sure a reader must be of a file that the user named
MAX_STDIN = 256 << 20
MAX_SEARCHED = 32 << 20  # of a damaged file that is searched for a traceback
STDIN = "standard input"
ALIKE = 0.5  # share of the columns that two runs of one program have in common
_RANK = re.compile(r"(?:rank|worker|gpu|node|process|attempt)[-_]?\d", re.IGNORECASE)
_TRY_NAMED = "a log, a table or JSON of metrics, a configuration, a script or a checkpoint"


@dataclass(slots=True)
class _Gathered:
    """What was read so far, and what could not be."""

    parts: list[Run] = field(default_factory=list)
    failed: list[tuple[str, TraindxError]] = field(default_factory=list)
    noted: list[Artifact] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    tell: Callable[[str], None] = lambda label: None
    is_interrupted: bool = False

    def is_new(self, path: Path) -> bool:
        """Tell whether a file comes for the first time, by whatever name."""
        real = os.path.realpath(path)
        is_new = real not in self.seen
        self.seen.add(real)
        return is_new


def open_paths(
    paths: Sequence[str],
    *,
    stdin: IO[bytes] | None = None,
    context: str | None = None,
    symptoms: Sequence[str] = (),
    tell: Callable[[str], None] = lambda label: None,
) -> Run:
    """Return the one run that files, folders, ``-`` and a context package tell of.

    No path means the current folder. A path that does not exist is an error. Of several files,
    those that cannot be read become warnings as long as one can. `tell` hears of each file before
    it is read; an interrupt ends the reading and keeps what was read until then.
    """
    gathered = _Gathered(tell=tell)
    package = read_package(Path(context)) if context is not None else Package()
    named = list(paths) or ([] if context is not None else ["."])
    with TemporaryDirectory(prefix="traindx-") as spool:
        for path in named:
            before = len(gathered.parts)
            _open(path, gathered, Path(spool), stdin)
            _refuse_rivals(gathered.parts[:before], gathered.parts[before:])
        for file in package.files:
            _open_existing(file, str(file), gathered)
        for i, (role, text) in enumerate(package.texts):
            inline = Path(spool, f"{role}-{i}".replace("/", "-"))
            inline.write_text(text, encoding="utf-8")
            _open_file(inline, f"{context}: {role}", gathered)
    if not gathered.parts and gathered.failed and context is None:
        raise gathered.failed[0][1]
    unread = [Artifact(label, "", (_reason(error),)) for label, error in gathered.failed]
    rest = Run(
        artifacts=(*gathered.noted, *unread, *package.missing),
        events=tuple(gathered.events),
        symptoms=(*symptoms, *package.symptoms),
    )
    run = merge_runs([*_as_they_ran(gathered.parts), rest], _name(named, context))
    return replace(run, events=(*run.events, *_rivals(run)))


def _refuse_rivals(known: Sequence[Run], added: Sequence[Run]) -> None:
    """Refuse two runs given together: one diagnosis of both would be true of neither."""
    for part in added:
        for other in known:
            is_recorded = part.recording is not None and other.recording is not None
            if not is_recorded and _is_rival(part, other):
                here, there = part.artifacts[0].path, other.artifacts[0].path
                why = f"it is of another run than {there}: the same steps have other values"
                raise UnreadableArtifact(here, why, f"one run at a time: traindx diagnose {here}")


def _as_they_ran(parts: Sequence[Run]) -> list[Run]:
    """Leave out source files that a recording has copies of: it is the copies that ran."""
    kept = {os.path.realpath(s.path) for p in parts if p.recording is not None for s in p.sources}
    return [
        part
        if part.recording is not None or not part.sources
        else replace(
            part,
            sources=tuple(s for s in part.sources if os.path.realpath(s.path) not in kept),
        )
        for part in parts
    ]


def _name(named: Sequence[str], context: str | None) -> str:
    first = named[0] if named else context or "run"
    return STDIN if first == "-" else Path(first).absolute().name or "run"


def _reason(error: TraindxError) -> str:
    return error.why if isinstance(error, UnreadableArtifact) else str(error)


def _open(path: str, gathered: _Gathered, spool: Path, stdin: IO[bytes] | None) -> None:
    if path == "-":
        file = spool / "stdin"
        warnings = _spool(stdin if stdin is not None else sys.stdin.buffer, file)
        gathered.noted += [Artifact(STDIN, "", (w,)) for w in warnings]
        _open_file(file, STDIN, gathered)
        return
    try:
        exists = os.path.lexists(path)
    except ValueError:  # a NUL in the name
        exists = False
    if not exists:
        raise UnreadableArtifact(path, "it does not exist", "the path of a file or a folder")
    _open_existing(Path(path), str(Path(path)), gathered)


def _open_existing(path: Path, label: str, gathered: _Gathered) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:  # a link in a circle or to nowhere
        why = f"it cannot be opened: {error.strerror or error}"
        gathered.failed.append((label, UnreadableArtifact(label, why, "the file itself")))
        return
    if stat.S_ISDIR(mode):
        _open_folder(path, label, gathered)
    elif is_run_file(path):  # it stands for its folder, with what the command printed
        _open_folder(path.parent, str(path.parent), gathered)
    elif stat.S_ISREG(mode):
        if gathered.is_new(path):
            _open_file(path, label, gathered)
    else:  # reading it might wait for ever
        why, remedy = "it is a pipe or a device, not a file", "cat it | traindx diagnose -"
        gathered.failed.append((label, UnreadableArtifact(label, why, remedy)))


def _spool(source: IO[bytes], file: Path) -> list[str]:
    """Keep a stream in a file: readers look at the head first, then read from the start."""
    written = 0
    with file.open("wb") as target:
        while written < MAX_STDIN and (data := source.read(1 << 20)):
            written += len(data)
            target.write(data)
    return [f"only the first {MAX_STDIN >> 20} MB were read"] if written >= MAX_STDIN else []


def _open_file(path: Path, label: str, gathered: _Gathered) -> None:
    """Read a file that was named, by the reader that is surest of it."""
    try:
        head = read_head(path)
        if not head.strip():
            raise UnreadableArtifact(label, "it is empty", "a file that the run wrote to")
        reader, score = recognise(path, head)
        if reader is None or score < NAMED:
            is_binary = b"\0" in head
            why = "it is binary, of a kind" if is_binary else "it is of a kind"
            raise UnreadableArtifact(label, f"{why} that no reader recognises", _TRY_NAMED)
    except OSError as error:
        why = f"it cannot be opened: {error.strerror or error}"
        remedy = "a copy that you may read"
        gathered.failed.append((label, UnreadableArtifact(label, why, remedy)))
    except TraindxError as error:
        gathered.failed.append((label, error))
    else:
        _read(path, label, reader, gathered)


def _read(path: Path, label: str, reader: Reader, gathered: _Gathered) -> None:
    if gathered.is_interrupted or deadline.is_over():
        why = "it was not reached before the interruption or the time limit"
        gathered.failed.append((label, UnreadableArtifact(label, why, "a larger --max-time")))
        return
    gathered.tell(label)
    try:
        run = reader.read(path)
    except KeyboardInterrupt:  # the user has waited long enough and wants what is known
        gathered.is_interrupted = True
        why = "reading it was interrupted"
        gathered.failed.append((label, UnreadableArtifact(label, why, "waiting for it")))
    except UnreadableArtifact as error:
        told = UnreadableArtifact(label, error.why, error.try_this, error.place)
        gathered.failed.append((label, told))
    except TraindxError as error:
        gathered.failed.append((label, error))
    except OSError as error:
        why = f"it cannot be read: {error.strerror or error}"
        told = UnreadableArtifact(label, why, "a copy that you may read")
        gathered.failed.append((label, told))
    except Exception as error:  # one file that a reader chokes on must not cost the other files
        why = f"the {reader.name} reader failed on it: {type(error).__name__}: {error}"
        told = UnreadableArtifact(label, why, "reporting this file as a bug of traindx")
        gathered.failed.append((label, told))
    else:
        gathered.parts.append(_labelled(run, path, label, reader.name))
        is_mixed = reader.name not in {"console", "recording"}
        if is_mixed and any(a.warnings for a in run.artifacts):
            _read_messages(path, label, gathered)


def _read_messages(path: Path, label: str, gathered: _Gathered) -> None:
    """Look for tracebacks and warnings among the rows of a table or JSON file: they say why."""
    console = next((r for r in readers().items if r.name == "console"), None)
    if console is None or path.stat().st_size > MAX_SEARCHED or not is_text(read_head(path)):
        return
    try:
        run = _labelled(console.read(path), path, label, console.name)
    except Exception:  # it was read by its own reader; this one only looked for more
        return
    printed = tuple(e for e in run.events if e.locator.startswith("line "))
    own = gathered.parts[-1]
    gathered.parts[-1] = replace(
        own, failures=(*own.failures, *run.failures), events=(*own.events, *printed)
    )


def _labelled(run: Run, path: Path, label: str, reader: str) -> Run:
    """Name an artifact as the user knows it, which a spooled stream is not."""
    own = {str(path), path.name}

    def named(artifact: str) -> str:
        return label if artifact in own else artifact

    artifacts = tuple(replace(a, path=named(a.path)) for a in run.artifacts)
    weights, seen = run.architecture, run.recording
    processes = seen.processes if seen is not None else ()
    return replace(
        run,
        recording=seen
        and replace(seen, processes=tuple(replace(p, path=named(p.path)) for p in processes)),
        series={
            n: replace(s, origin=replace(s.origin, artifact=named(s.origin.artifact)))
            for n, s in run.series.items()
        },
        events=tuple(replace(e, artifact=named(e.artifact)) for e in run.events),
        failures=tuple(replace(f, artifact=named(f.artifact)) for f in run.failures),
        sources=tuple(replace(s, path=named(s.path)) for s in run.sources),
        config=Config(tuple(replace(s, artifact=named(s.artifact)) for s in run.config.settings)),
        architecture=weights and replace(weights, artifact=named(weights.artifact)),
        checkpoints=tuple(replace(c, artifact=named(c.artifact)) for c in run.checkpoints),
        samples=tuple(replace(s, artifact=named(s.artifact)) for s in run.samples),
        confusions=tuple(replace(c, artifact=named(c.artifact)) for c in run.confusions),
        artifacts=artifacts or (Artifact(label, reader),),
    )


def _open_folder(folder: Path, label: str, gathered: _Gathered) -> None:
    """Read what a folder holds of one run; of several runs, the latest."""
    found = search(folder)
    members = found.members
    while runs := split_runs(members):
        chosen = latest(runs)
        others = [inner for inner in runs if inner != chosen]
        members = [m for m in members if not any(m.inner[: len(o)] == o for o in others)]
        _note_others("/".join(chosen), ["/".join(o) for o in others], folder, gathered)
    before = len(gathered.failed)
    read = _Gathered(failed=gathered.failed)
    members = [m for m in members if m.reader is not None and gathered.is_new(m.path)]
    for member in sorted(members, key=lambda m: -m.changed_s):
        if member.reader is not None:
            _read(member.path, str(member.path), member.reader, read)
    kept, rivals = _one_run(read.parts)
    if rivals:
        newest = kept[0].artifacts[0].path
        _note_others(newest, [r.artifacts[0].path for r in rivals], folder, gathered)
    order = {str(m.path): i for i, m in enumerate(members)}
    gathered.parts += sorted(kept, key=lambda r: order.get(r.artifacts[0].path, len(order)))
    if found.notes:
        gathered.noted.append(Artifact(label, "", tuple(found.notes)))
    if not kept and len(gathered.failed) == before:
        gathered.failed.append((label, _nothing_in(label, found)))


def _one_run(parts: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Part the files of the newest run from those of others that lie in the same folder.

    Files with the same columns that tell different stories of the same steps are different runs.
    """
    kept: list[Run] = []
    others: list[Run] = []
    for part in parts:
        is_other = any(_is_rival(part, newer) for newer in kept)
        (others if is_other else kept).append(part)
    if others:  # the one that was kept comes first, for the message
        kept.sort(key=lambda k: not any(_is_rival(o, k) for o in others))
    return kept, others


def _is_rival(part: Run, newer: Run) -> bool:
    ours, theirs = ({s.origin.name for s in p.series.values()} for p in (part, newer))
    names = [n for n in part.series if phase_of(n) and n in newer.series and "@" not in n]
    if not names or len(ours & theirs) < ALIKE * len(ours | theirs):
        return False
    if part.artifacts[0].reader != newer.artifacts[0].reader:
        return False  # a log and a table of one run, told in different ways
    paths = part.artifacts[0].path, newer.artifacts[0].path
    if any(_RANK.search(path) for path in paths) or are_parts_of_one_output(*paths):
        return False
    name = max(names, key=lambda n: (n.startswith("loss/"), len(part.series[n])))
    a, b = part.series[name], newer.series[name]
    return a.axis == b.axis and len(resolve([a, b])) > 1


def _nothing_in(label: str, found: Search) -> UnreadableArtifact:
    notes = "; ".join(found.notes)
    why = f"none of the {found.looked_at} files looked at is an artifact of a training run"
    return UnreadableArtifact(label, f"{why} ({notes})" if notes else why, _TRY_NAMED)


def _note_others(chosen: str, others: Sequence[str], folder: Path, gathered: _Gathered) -> None:
    shown = ", ".join(others[:5])
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    text = (
        f"it holds {len(others) + 1} runs; this is {chosen}, the latest."
        f" Left out: {shown}{more}. Name one of them, or see all with: traindx scan {folder}"
    )
    gathered.noted.append(Artifact(str(folder), "", (text,)))
    gathered.events.append(Event("warning", text, str(folder)))


def _is_of_one_recording(paths: tuple[str, str], recorded: Collection[str]) -> bool:
    """What a recorded command prints is the same loss smoothed, or averaged over an epoch."""
    seen = [path in recorded for path in paths]
    beside = Path(paths[0]).parent == Path(paths[1]).parent
    return beside and seen[0] != seen[1] and any(is_output(Path(path).name) for path in paths)


def _rivals(run: Run) -> list[Event]:
    """Say so where two files tell different stories of the same loss: they may be two runs."""
    events = []
    recorded = recorded_paths(run.recording)
    for phase in ("train", "val"):
        name = f"loss/{phase}"
        first, second = run.series.get(name), run.series.get(f"{name}@2")
        if first is None or second is None or first.axis != second.axis:
            continue
        paths = first.origin.artifact, second.origin.artifact
        if paths[0] == paths[1] or are_parts_of_one_output(*paths):
            continue
        if _is_of_one_recording(paths, recorded):
            continue
        if first.steps.max() < second.steps.min() or second.steps.max() < first.steps.min():
            continue
        text = (
            f"{second.origin.artifact} tells of another {name} than {first.origin.artifact};"
            " if they are two runs, give one of them at a time"
        )
        events.append(Event("warning", text, second.origin.artifact))
    return events
