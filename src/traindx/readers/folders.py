"""What a folder holds of training runs: the likely files first, the others not at all.

A folder may be a whole project. Names and sizes say where to look, only the head of a file is read
to recognise it, and the number of files that are looked at is bounded.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from traindx.model.metric_names import PHASES, words
from traindx.readers.formats.recording.recording_files import is_output, spoken_for
from traindx.registry import Reader, readers

SNIFFED_BYTES = 64 << 10
FOUND = 0.3  # how sure a reader must be of a file that nobody named
SURE = 0.9  # … and of what a command printed, to be preferred to the reader of logs
MAX_ENTRIES = 30_000  # walked in well under a second
MAX_SNIFFED = 400
MAX_ALIKE = 40  # files of one kind in one folder; beyond that they are data
MAX_SOURCES = 60
MAX_DEPTH = 8
MAX_UNHINTED_BYTES = 512 << 20  # a larger file that is not named like an artifact is data
COPIED_WITHIN_S = 60.0  # files written this close together were copied: their age says nothing

_SKIPPED_FOLDERS = frozenset(
    {"node_modules", "__pycache__", "site-packages", "venv", "env", "build", "dist", "wheels",
     "egg-info", "htmlcov"}
)  # fmt: skip
_MLFLOW = frozenset({"metrics", "params", "tags"})  # beside meta.yaml, which stands for them
_HIDDEN_BUT_TELLING = frozenset({".hydra"})
_OWN_REPORTS = frozenset({"diagnosis.json", "report.html", "report.md", "fix.patch"})
_TELLING = frozenset(
    {"train", "training", "trainer", "loss", "losses", "metrics", "metric", "log", "logs",
     "history", "results", "result", "eval", "val", "valid", "config", "hparams", "args", "error",
     "err", "traceback", "model", "progress", "scalars", "stats", "params", "events", "tfevents",
     "nohup", "slurm", "stdout", "stderr", "output", "trace", "recording", "settings", "main"}
)  # fmt: skip
_TEXTUAL = frozenset(
    {".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".yaml", ".yml", ".toml", ".log", ".txt",
     ".out", ".err", ".py", ".ini", ".cfg"}
)  # fmt: skip
_NEVER = frozenset(
    {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".svg", ".tif", ".tiff", ".ico", ".pdf",
     ".mp3", ".wav", ".flac", ".mp4", ".avi", ".mov", ".mkv", ".zip", ".tar", ".gz", ".bz2", ".xz",
     ".7z", ".rar", ".whl", ".pyc", ".pyo", ".so", ".a", ".o", ".dll", ".dylib", ".exe", ".class",
     ".jar", ".parquet", ".arrow", ".h5", ".hdf5", ".npy", ".npz", ".mat", ".tfrecord", ".lmdb",
     ".html", ".css", ".js", ".ts", ".tsx", ".md", ".rst", ".tex", ".ttf", ".woff", ".woff2",
     ".doc", ".docx", ".xlsx", ".pptx", ".lock", ".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".rs",
     ".go", ".java", ".patch", ".diff", ".xml"}
)  # fmt: skip
_CHECKPOINT = re.compile(r"(?:checkpoint|ckpt|global_step|step|epoch)[-_=]?(\d+)", re.IGNORECASE)
_RANK = re.compile(
    r"(?:rank|worker|gpu|node|process|local_rank|device|attempt)[-_]?\d+|\d+", re.IGNORECASE
)
_NO_METRICS = frozenset({"python", "settings"})
_WHOLE_RUNS = frozenset({"mlflow", "recording"})  # one of their folders is never a part of a run


@dataclass(frozen=True, slots=True)
class Member:
    """A file in a folder, and the reader that recognised it."""

    path: Path
    inner: tuple[str, ...]  # its path inside the folder
    size: int
    changed_s: float
    reader: Reader | None = None
    score: float = 0.0


@dataclass(slots=True)
class Search:
    """What was found in a folder, and in words what was not looked at."""

    members: list[Member] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    looked_at: int = 0


def search(folder: Path) -> Search:
    """Find the artifacts in a folder."""
    found = Search()
    likely = _order(_walk(folder, found), found)
    strange: list[str] = []
    for member in likely[:MAX_SNIFFED]:
        if member.reader is not None:
            found.members.append(member)
            continue
        try:
            head = read_head(member.path)
        except OSError as error:
            found.notes.append(f"{_shown(member)} cannot be opened: {error.strerror or error}")
            continue
        found.looked_at += 1
        reader, score = recognise(member.path, head)
        if reader is not None and score >= FOUND:
            found.members.append(
                Member(member.path, member.inner, member.size, member.changed_s, reader, score)
            )
        elif member.path.suffix in _TEXTUAL:
            strange.append(_shown(member))
    if len(likely) > MAX_SNIFFED:
        left = len(likely) - MAX_SNIFFED
        found.notes.append(f"{left} more files were not looked at; name one to have it read")
    if strange:
        found.notes.append(f"not recognised: {_some(strange)}")
    found.members = _without_excess(_latest_checkpoint(found.members), found)
    return found


MIN_HOLE, MAX_HOLE = 64, 64 << 20  # NUL bytes; binary formats have fewer before something else


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, after the hole that a truncated log leaves its writer."""
    with path.open("rb") as file:
        head = file.read(SNIFFED_BYTES)
        for _ in range(MAX_HOLE // SNIFFED_BYTES):
            if not head or head.strip(b"\0"):
                break
            head = file.read(SNIFFED_BYTES)
        is_hole = len(head) - len(head.lstrip(b"\0")) >= MIN_HOLE or file.tell() > SNIFFED_BYTES
        return head.lstrip(b"\0") if is_hole else head


def recognise(path: Path, head: bytes) -> tuple[Reader | None, float]:
    """Return the reader that is surest of a file, and how sure it is."""
    best: Reader | None = None
    score = 0.0
    for reader in readers().items:
        try:
            own = float(reader.sniff(path, head))
        except Exception:  # a reader that chokes on a stranger's file does not recognise it
            continue
        if own > score:
            best, score = reader, own
    return best, score


def _walk(folder: Path, found: Search) -> list[Member]:
    """List the files below a folder, nearest first; links to folders may lead in circles."""
    members: list[Member] = []
    waiting: list[tuple[Path, tuple[str, ...]]] = [(folder, ())]
    entries = 0
    while waiting:
        place, inner = waiting.pop(0)
        try:
            with os.scandir(place) as listing:
                here = sorted(listing, key=lambda e: e.name)
        except OSError as error:
            shown = "/".join(inner) or str(folder)
            found.notes.append(f"{shown} cannot be opened: {error.strerror or error}")
            continue
        names = {entry.name for entry in here}
        recorded = spoken_for(place, names)
        ruled = recorded | (_MLFLOW if "meta.yaml" in names else frozenset())
        for entry in here:
            if entry.name in ruled:
                continue
            entries += 1
            if entries > MAX_ENTRIES:
                found.notes.append(f"only the first {MAX_ENTRIES} files and folders were listed")
                return members
            _sort_in(entry, inner, members, waiting)
            is_new = bool(members) and members[-1].path == Path(entry.path)
            if is_new and recorded and is_output(entry.name):
                members[-1] = replace(members[-1], reader=_reads_output(members[-1].path), score=1)
    return members


def _reads_output(path: Path) -> Reader | None:
    """A recorded command may print whatever it likes: that is a log, or from its top on a table."""
    try:
        best, score = recognise(path, read_head(path))
    except OSError:  # gone since, or not ours to read: whoever opens it says so
        best, score = None, 0.0
    if best is not None and best.name == "table" and score >= SURE:
        return best
    return next((r for r in readers().items if r.name == "console"), None)


def _sort_in(
    entry: os.DirEntry[str],
    inner: tuple[str, ...],
    members: list[Member],
    waiting: list[tuple[Path, tuple[str, ...]]],
) -> None:
    name = entry.name
    try:
        if entry.is_dir(follow_symlinks=False):
            is_hidden = name.startswith(".") and name not in _HIDDEN_BUT_TELLING
            if not is_hidden and name not in _SKIPPED_FOLDERS and len(inner) < MAX_DEPTH:
                waiting.append((Path(entry.path), (*inner, name)))
            return
        if name.startswith(".") or name in _OWN_REPORTS:
            return
        about = entry.stat()
    except OSError:  # a link to nowhere, or gone since
        return
    if stat.S_ISREG(about.st_mode) and about.st_size and Path(name).suffix.lower() not in _NEVER:
        members.append(Member(Path(entry.path), (*inner, name), about.st_size, about.st_mtime))


def _order(members: Iterable[Member], found: Search) -> list[Member]:
    """Put likely artifacts first, and leave out the many that are alike: they are data."""
    ranked = sorted(members, key=lambda m: (_rank(m), len(m.inner), m.inner))
    alike: Counter[tuple[tuple[str, ...], str]] = Counter()
    kept, data = [], 0
    for member in ranked:
        kind = (member.inner[:-1], member.path.suffix.lower())
        alike[kind] += 1
        is_large = member.size > MAX_UNHINTED_BYTES and _rank(member) > 0
        if is_large or (alike[kind] > MAX_ALIKE and member.path.suffix != ".py"):
            data += 1
        else:
            kept.append(member)
    if data:
        found.notes.append(
            f"{data} files look like data and were left out; name one to have it read"
        )
    return kept


def _rank(member: Member) -> int:
    """Say how likely a file is an artifact by its name: 0 is likely, 3 is not."""
    is_telling = not _TELLING.isdisjoint(words(member.inner[-1]))
    is_textual = member.path.suffix.lower() in _TEXTUAL
    return (0 if is_telling else 1) if is_textual else (2 if is_telling else 3)


def _latest_checkpoint(members: list[Member]) -> list[Member]:
    """Keep what the last checkpoint holds: each one repeats the history of those before."""
    last: dict[tuple[str, ...], int] = {}
    numbered: list[tuple[Member, tuple[str, ...], int]] = []
    for member in members:
        for i, part in enumerate(member.inner[:-1]):
            if match := _CHECKPOINT.fullmatch(part):
                parent, number = member.inner[:i], int(match[1])
                last[parent] = max(last.get(parent, 0), number)
                numbered.append((member, parent, number))
                break
    earlier = {m.path for m, parent, number in numbered if number < last[parent]}
    return [m for m in members if m.path not in earlier]


def _without_excess(members: list[Member], found: Search) -> list[Member]:
    sources = [m for m in members if m.reader is not None and m.reader.name == "python"]
    sources.sort(key=lambda m: (-m.score, _rank(m), len(m.inner), m.inner))
    extra = {m.path for m in sources[MAX_SOURCES:]}
    if extra:
        found.notes.append(
            f"{len(extra)} more Python files were left out; name one to have it read"
        )
    return [m for m in members if m.path not in extra]


def split_runs(members: Sequence[Member]) -> dict[tuple[str, ...], list[Member]]:
    """Return the folders that hold a run each, with their metrics; empty if there is but one run.

    Two runs are two sibling folders with the same file of metrics in them. The folders of two
    ranks, or of training and validation, are one run.
    """
    alike: dict[tuple[int, str], list[Member]] = {}
    for member in members:
        if member.reader is not None and member.reader.name not in _NO_METRICS:
            name = re.sub(r"\d+", "#", member.inner[-1])
            alike.setdefault((len(member.inner), name), []).append(member)
    shallowest: tuple[str, ...] | None = None
    for group in alike.values():
        parent = _shared_folder(group)
        names = {m.inner[len(parent)] for m in group}
        is_tracked = any(m.reader is not None and m.reader.name in _WHOLE_RUNS for m in group)
        if len(names) < 2 or (not is_tracked and all(_is_part_of_one_run(n) for n in names)):
            continue
        if all(len(m.inner) > len(parent) + 1 for m in group) and (
            shallowest is None or len(parent) < len(shallowest)
        ):
            shallowest = parent
    if shallowest is None:
        return {}
    runs: dict[tuple[str, ...], list[Member]] = {}
    for group in alike.values():
        for member in group:
            depth = len(shallowest)
            if member.inner[:depth] == shallowest and len(member.inner) > depth + 1:
                runs.setdefault(member.inner[: depth + 1], []).append(member)
    return runs if len(runs) > 1 else {}


def _shared_folder(members: Sequence[Member]) -> tuple[str, ...]:
    first, last = min(m.inner[:-1] for m in members), max(m.inner[:-1] for m in members)
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    return first[:shared]


def _is_part_of_one_run(name: str) -> bool:
    return name.lower() in PHASES or _RANK.fullmatch(name) is not None


def latest(runs: dict[tuple[str, ...], list[Member]]) -> tuple[str, ...]:
    """Return the folder whose metrics are newest, or fullest where their age says nothing."""
    ages = {inner: max(m.changed_s for m in members) for inner, members in runs.items()}
    is_copied = max(ages.values()) - min(ages.values()) < COPIED_WITHIN_S
    sizes = {inner: sum(m.size for m in members) for inner, members in runs.items()}

    def order(inner: tuple[str, ...]) -> tuple[float, int, list[int]]:
        numbers = [int(n) for n in re.findall(r"\d+", inner[-1])]
        return 0.0 if is_copied else ages[inner], sizes[inner], numbers

    return max(runs, key=order)


def find_runs(folder: Path) -> list[Path]:
    """Return the folders below one that hold a run each, for a scan; the folder itself if alone."""
    members = search(folder).members
    return [folder.joinpath(*inner) for inner in _leaves(members, ())] if members else []


def _leaves(members: Sequence[Member], at: tuple[str, ...]) -> list[tuple[str, ...]]:
    runs = split_runs(members)
    if not runs:
        return [at]
    return [leaf for inner, inside in runs.items() for leaf in _leaves(inside, inner)]


def _shown(member: Member) -> str:
    return "/".join(member.inner)


def _some(names: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
