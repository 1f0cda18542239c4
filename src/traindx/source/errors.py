"""What an error says and where it leads: the failure that came first, the user's line behind it.

A crash leaves several exceptions behind: the one that matters, those that wrap or handle it, and
those of other ranks that waited in vain. `root_failure` picks the one to explain.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from traindx.evidence import Evidence, Finding, Location, Strength, cite_source
from traindx.failures import own_frames
from traindx.model import Failure, Frame, Run, make_run
from traindx.source.module import Function, Module, argument, key_of
from traindx.source.project import Project, project_of

BURST_LINES = 200  # between two exceptions of one crash; the ranks of a large job fill that much
FRAME_LINES = 3  # a frame, its code, its markers
SURVIVED_POINTS = 5  # values logged after an exception: it was caught, the run went on
CHAIN_LINES = 6

ECHO = re.compile(
    r"""Connection\ (?:closed|reset)\ by\ peer|Watchdog\ caught\ collective|Timed\ out\ waiting
    |timed\ out\ in\ blocking\ wait|communicator\ (?:was|is)\ aborted|remote\ process\ exited
    |ncclRemoteError|Socket\ Timeout|Broken\ pipe|NCCL\ watchdog|TCPStore.{0,80}(?:recv|sendBytes)
    |failed\ to\ recv,\ got\ 0\ bytes|exited\ unexpectedly|signal:\ Terminated
    |Process\ \d+\ got\ signal|HeartbeatMonitor|wait\ timeout\ after\ \d+ms
    |terminated\ with\ exit\ code|Trials\ did\ not\ complete|actor\ died\ unexpectedly""",
    re.VERBOSE,
)
ECHO_TYPES = frozenset({"ChildFailedError", "ProcessRaisedException", "ProcessExitedException"})
ASIDE = frozenset(
    {"BrokenPipeError", "ConnectionResetError", "KeyboardInterrupt", "SystemExit",
     "SignalException", "Aborted", "WorkerDeath"}
)  # fmt: skip
# raised and caught all the time inside of libraries
PROBES = frozenset(
    {"KeyError", "AttributeError", "ImportError", "ModuleNotFoundError", "StopIteration",
     "FileNotFoundError", "IndexError", "queue.Empty", "_queue.Empty"}
)  # fmt: skip

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(?:(?:([KMGTP])i?)?B\b|bytes)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_CLEANS_UP = re.compile(r"^_*(?:tear_?down|cleanup|clean_up|__exit__|__del__|shutdown)", re.I)
CONTEXT_BYTES = 1 << 30  # what a process holds besides its tensors: CUDA context and libraries
_S = r"(\d+(?:\.\d+)? ?(?:[KMGT]i?B|bytes))"
ALLOCATION = {
    "tried": re.compile(rf"(?:[Tt]ried to allocate|trying to allocate|memory allocating) {_S}"),
    "capacity": re.compile(rf"total capaci?ty of {_S}|{_S} total capacity|max allowed: {_S}"),
    "free": re.compile(rf"of which {_S} is free|{_S} free"),
    "allocated": re.compile(
        rf"memory {_S} is allocated by PyTorch|{_S} already allocated|MPS allocated: {_S}"
    ),
    "reserved": re.compile(rf"{_S} reserved in total|{_S} cached"),
    "unallocated": re.compile(rf"{_S} is reserved by PyTorch but unallocated"),
    "own": re.compile(rf"this process has {_S} memory in use"),
}


# --- which of several exceptions ------------------------------------------------------------------


@lru_cache(maxsize=1)  # every detector of an error asks, of one run at a time
def last_burst(run: Run) -> tuple[Failure, ...]:
    """Return the exceptions that ended the run, in order; none if the run went on after them."""
    failures = run.failures
    if not failures or _points_after(run, failures[-1]) >= SURVIVED_POINTS:
        return ()
    start = len(failures) - 1
    while start and (
        _is_near(run, failures[start - 1], failures[start])
        or all(standing(f) for f in failures[start:])
    ):
        start -= 1
    return failures[start:]


def root_failure(run: Run) -> Failure | None:
    """Return the exception to explain: first in its chain, first rank in time, no mere echo."""
    burst = last_burst(run)
    if not burst:
        return None
    best = min(standing(f) for f in burst)
    candidates = [f for f in burst if standing(f) == best]
    named = next((f.rank for f in burst if _last_part(f.type) == "ChildFailedError"), None)
    # the launcher's summary has no message: what a process itself wrote says more
    candidates = [f for f in candidates if _last_part(f.type) not in ECHO_TYPES] or candidates
    of_rank = [f for f in candidates if f.rank == named is not None]
    candidates = of_rank or candidates
    first = candidates[0]
    for later in candidates[1:2]:
        if _is_probe(first, later):
            return later
    return first


def standing(failure: Failure) -> int:
    """Say how far an exception is from the cause: 0 itself, 1 an echo, 2 a mere side effect."""
    name = _last_part(failure.type)
    if name in ASIDE or (name == "EOFError" and _is_between_processes(failure)):
        return 2
    return 1 if name in ECHO_TYPES or ECHO.search(failure.message) else 0


def _is_between_processes(failure: Failure) -> bool:
    return any("multiprocessing" in frame.file for frame in failure.frames)


def is_joining(failure: Failure) -> bool:
    """Tell whether an exception came while the process group was made, before the ranks met."""
    name = "init_process_group"
    return any(f.function == name or f"{name}(" in f.code for f in failure.frames)


def echoes(run: Run) -> tuple[Failure, ...]:
    """Return the exceptions of a crash that only follow from another rank's end."""
    return tuple(f for f in last_burst(run) if standing(f) == 1)


def _is_probe(first: Failure, later: Failure) -> bool:
    """Tell whether a library tried something in vain, and failed for good in what it did next."""
    is_linked = _start(later) - _end(first) <= CHAIN_LINES and later.rank == first.rank
    is_other = _last_part(later.type) != _last_part(first.type)
    is_probe = _last_part(first.type) in PROBES and not own_frames(first)
    if any(_CLEANS_UP.search(frame.function) for frame in later.frames):
        return False  # what fails while it clears away hides the error that it cleared away after
    return is_linked and is_other and is_probe and bool(own_frames(later))


def _is_near(run: Run, first: Failure, later: Failure) -> bool:
    if first.artifact != later.artifact:
        return True  # the log of another rank: nothing says which came first
    if first.step is not None and later.step is not None and first.step != later.step:
        return False
    gap = _start(later) - _end(first)
    return gap <= BURST_LINES and not _is_logged_between(run, first, later)


def _line(failure: Failure) -> int:
    found = _NUMBER.search(failure.locator)
    return int(found[0]) if found else 0


def _start(failure: Failure) -> int:
    return _line(failure) - FRAME_LINES * len(failure.frames)


def _end(failure: Failure) -> int:
    return _line(failure) + failure.message.count("\n")


def _is_logged_between(run: Run, first: Failure, later: Failure) -> bool:
    low, high = _end(first), _start(later)
    return any(((s >= low) & (s <= high)).any() for s in _places(run, first.artifact))


def _points_after(run: Run, failure: Failure) -> int:
    return max((int((s > _line(failure)).sum()) for s in _places(run, failure.artifact)), default=0)


def _places(run: Run, artifact: str) -> list[Any]:
    found = run.series.values()
    return [s.places for s in found if s.origin.artifact == artifact and s.origin.unit == "line"]


def _last_part(name: str) -> str:
    return name.split("(", 1)[0].replace("::", ".").rsplit(".", 1)[-1]


# --- what its message says ------------------------------------------------------------------------


def match_root(
    run: Run, *patterns: re.Pattern[str], types: Iterable[str] = ()
) -> tuple[Failure, re.Match[str]] | None:
    """Return the failure to explain where its message fits one of the patterns."""
    failure = root_failure(run)
    wanted = frozenset(types)
    if failure is None or (wanted and _last_part(failure.type) not in wanted):
        return None
    for pattern in patterns:
        found = pattern.search(failure.message)
        if found is not None:
            return failure, found
    return None


def first_line(failure: Failure, limit: int = 200) -> str:
    """Return an exception as its last line in a traceback reads."""
    message = failure.message.split("\n", 1)[0].strip()
    text = f"{_last_part(failure.type)}: {message}" if message else _last_part(failure.type)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def memory_bytes(text: str) -> float | None:
    """Return a size such as ``9.71 GiB`` or ``512 bytes``."""
    found = SIZE.search(text)
    return float(found[1]) * UNITS[(found[2] or "").upper()] if found is not None else None


def memory_words(size: float) -> str:
    """Write a size the way torch does."""
    for unit in ("P", "T", "G", "M", "K"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.2f} {unit}iB"
    return f"{size:.0f} bytes"


@dataclass(frozen=True, slots=True)
class Allocation:
    """The numbers of an out-of-memory message, in bytes; 0 where it has none."""

    tried: float = 0.0
    capacity: float = 0.0
    free: float = 0.0
    allocated: float = 0.0
    reserved: float = 0.0
    unallocated: float = 0.0
    own: float = 0.0

    @property
    def loose(self) -> float:
        """What PyTorch holds without using it."""
        return self.unallocated or max(0.0, self.reserved - self.allocated)

    @property
    def others(self) -> float:
        """What other processes hold, as far as the numbers tell."""
        if not self.capacity or not (self.own or self.allocated or self.reserved):
            return 0.0
        own = self.own or self.allocated + self.loose + CONTEXT_BYTES
        return max(0.0, self.capacity - self.free - own)


def read_allocation(message: str) -> Allocation:
    """Return every number of an out-of-memory message, old or new."""
    found = {}
    for name, pattern in ALLOCATION.items():
        match = pattern.search(message)
        text = next((g for g in match.groups() if g), "") if match else ""
        found[name] = memory_bytes(text) or 0.0
    return Allocation(**found)


def shape_of(text: str) -> tuple[int, ...]:
    """Return the sizes in ``[256, 128]`` or ``torch.Size([10])``."""
    return tuple(int(n) for n in _NUMBER.findall(text))


# --- where it leads -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Site:
    """A statement of the user's source."""

    module: Module
    node: ast.stmt

    @property
    def function(self) -> Function | None:
        return self.module.function_of(self.node)

    @property
    def location(self) -> Location:
        return location_of(self.module, self.node)


def location_of(module: Module, node: ast.AST) -> Location:
    """Return a node's place, a statement with a body cut down to its head."""
    line = int(getattr(node, "lineno", 1))
    body = getattr(node, "body", None)
    is_block = isinstance(body, list) and body
    last = line if is_block else int(getattr(node, "end_lineno", None) or line)
    return Location(module.path, line, last)


def culprit_frame(run: Run, failure: Failure) -> Frame | None:
    """Return the innermost frame in the user's own code, of the failure or of what followed it."""
    following = [f for f in last_burst(run) if f is not failure and f.rank == failure.rank]
    for candidate in (failure, *following):
        frames = own_frames(candidate)
        if frames:
            return frames[-1]
    return None


def site_of(run: Run, failure: Failure) -> Site | None:
    """Return the statement of the source at which the user's own code failed."""
    frame = culprit_frame(run, failure)
    return None if frame is None else site_at(run, frame)


def site_at(run: Run, frame: Frame) -> Site | None:
    """Return the statement that a frame points at, if the source is the one that ran."""
    module = module_at(project_of(run), frame.file)
    line = _line_in(module, frame) if module is not None else None
    if module is None or line is None:
        return None
    around = [
        n
        for n in ast.walk(module.tree)
        if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    if not around:
        return None
    return Site(module, min(around, key=lambda n: (n.end_lineno or n.lineno) - n.lineno))


def module_at(project: Project, file: str) -> Module | None:
    """Return the source of a file that a traceback names: same name, most folders in common."""
    parts = file.replace("\\", "/").split("/")
    best: tuple[int, Module] | None = None
    for module in project.modules:
        own = module.path.replace("\\", "/").split("/")
        shared = 0
        while shared < min(len(own), len(parts)) and own[-1 - shared] == parts[-1 - shared]:
            shared += 1
        if shared and (best is None or shared > best[0]):
            best = shared, module
    return best[1] if best else None


def _line_in(module: Module, frame: Frame) -> int | None:
    """Return a frame's line in a source that may have changed by some lines since it ran."""
    lines = module.lines
    code = " ".join(frame.code.split())
    if not code:
        return frame.line if 0 < frame.line <= len(lines) else None
    fits = [i for i, text in enumerate(lines, 1) if " ".join(text.split()).startswith(code)]
    if frame.line in fits:
        return frame.line
    return fits[0] if len(fits) == 1 else None


def place_of(run: Run, failure: Failure) -> Location | None:
    """Return where the user's own code failed, in the source if it is at hand."""
    frame = culprit_frame(run, failure)
    if frame is None:
        return None
    site = site_at(run, frame)
    return site.location if site is not None else Location(frame.file, frame.line, frame.line)


def names_in(node: ast.AST) -> list[str]:
    """Return the names that an expression or statement reads, in order, each once."""
    keys = (key_of(n) for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)))
    return list(dict.fromkeys(k for k in keys if k))


def number_named(project: Project, *names: str) -> tuple[int, Module, ast.expr] | None:
    """Return the number that code gives to one of the names, as a variable or an argument."""
    for module in project.modules:
        for node in ast.walk(module.tree):
            name, value = "", None
            if isinstance(node, ast.keyword):
                name, value = node.arg or "", node.value
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, node.value
            if name in names and isinstance(value, ast.Constant) and type(value.value) is int:
                return value.value, module, value
    return None


def embedding_tables(project: Project) -> list[tuple[Module, ast.Call, str]]:
    """Return the embeddings that code makes, each with its number of rows in words."""
    found = []
    for module in project.modules:
        for call, name in module.calls():
            if name.rsplit(".", 1)[-1] in ("Embedding", "EmbeddingBag"):
                found.append((module, call, _rows(project, call)))
    return found


def _rows(project: Project, call: ast.Call) -> str:
    size = argument(call, "num_embeddings", 0)
    if isinstance(size, ast.Name) and (number := number_named(project, size.id)) is not None:
        return f"{size.id} = {number[0]}"
    return ast.unparse(size) if size is not None else "num_embeddings"


# --- the finding ----------------------------------------------------------------------------------


def cite_failure(run: Run, failure: Failure) -> Evidence:
    """Point at an exception in its artifact, and say where the user's code raised it."""
    frame = culprit_frame(run, failure)
    where = f", from {frame.file}:{frame.line}" if frame is not None else ""
    code = f" `{frame.code}`" if frame is not None and frame.code else ""
    rank = f" on rank {failure.rank}" if failure.rank is not None else ""
    return Evidence(f"{first_line(failure)}{rank}{where}{code}", failure.artifact, failure.locator)


@dataclass(frozen=True, eq=False)
class Culprit:
    """The line really at fault, what is wrong there, and the change that repairs it."""

    module: Module
    node: ast.AST
    says: str
    patch: str | None = None

    @property
    def evidence(self) -> Evidence:
        return cite_source(self.module.path, int(getattr(self.node, "lineno", 1)), self.says)

    @property
    def location(self) -> Location:
        return location_of(self.module, self.node)


def explain(
    run: Run,
    failure: Failure,
    claim: str,
    *,
    shows: str | None = None,
    suggests: Mapping[str, Strength] | None = None,
    culprit: Culprit | None = None,
    notes: Iterable[Evidence] = (),
) -> Finding:
    """Make the finding that explains a failure."""
    blamed = (culprit.evidence,) if culprit is not None else ()
    return Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=(cite_failure(run, failure), *blamed, *notes),
        suggests=dict(suggests or {}),
        shows=shows,
        is_symptom=True,
        onset=failure.step,
        location=culprit.location if culprit is not None else place_of(run, failure),
        patch=culprit.patch if culprit is not None else None,
    )


def make_failed_run(
    error: str,
    code: str = "",
    *,
    sources: Mapping[str, str] | None = None,
    line: int = 0,
    rank: int | None = None,
) -> Run:
    """Build a run that ended with ``Type: message``: for examples and tests.

    `code` is the line that raised; with sources, its place is looked up there.
    """
    name, _, message = error.partition(": ")
    file, at = "train.py", line or 31
    for path, text in (sources or {}).items():
        for number, written in enumerate(text.split("\n"), 1):
            if code and written.strip().startswith(code):
                file, at = path, line or number
    frames = (Frame(file, at, "<module>", code),) if code else ()
    failure = Failure(name, message, "train.log", "line 90", frames, rank)
    return make_run(failures=[failure], sources=sources)
