"""The ranks of a recorded run: who they are, where they stand still, and in which collective."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from traindx.analysis.errors.root_failure import standing
from traindx.model.findings import Evidence, Strength, cite_record, suggested
from traindx.model.recording import Caught, Fingerprint, Loader, Place, Process, Stall
from traindx.model.run import Failure, Frame, Run, Series
from traindx.tracebacks import own_frames

DATA_PARALLEL = ("DistributedDataParallel", "DDP")
_LOADER_FILES = ("torch/utils/data/",)
_COLLECTIVE_FILES = ("torch/distributed/",)
_SAVING_FILES = ("torch/serialization.py", "safetensors/", "torch/distributed/checkpoint/")
_LOCK_FILES = ("/threading.py", "/queue.py", "/multiprocessing/", "/concurrent/futures/")
_PROMPT_FILES = ("/pdb.py", "/bdb.py", "/cmd.py", "/code.py", "/IPython/", "/ipdb/")
EVERYONE = "0"  # the group that torch makes first; numbers begin with 1
# all ranks pass the same size; what is gathered, scattered or exchanged may differ by design
_SAME_SIZE = ("all_reduce", "allreduce", "broadcast", "reduce", "barrier")
LOOKS_WHILE_RUNNING = 2  # saving and evaluation take long as well, and then it goes on
# the other end is gone; a mere timeout says nothing of the kind
HUNG_UP = re.compile(r"[Cc]onnection (?:closed|reset) by peer|remote process exited|got 0 bytes")


def ranks_of(run: Run) -> tuple[Process, ...]:
    """Return one process per rank of a run on several; where a rank was restarted, the latest."""
    latest: dict[int, Process] = {}
    for process in run.recording.processes if run.recording is not None else ():
        known = latest.get(process.rank)
        if process.world_size > 1 and (known is None or not process.started_s < known.started_s):
            latest[process.rank] = process
    sizes = {p.world_size for p in latest.values()}
    if len(latest) < 2 or len(sizes) != 1:
        return ()
    return tuple(latest[rank] for rank in sorted(latest))


def has_ended_well(run: Run) -> bool:
    """Tell whether the command, or else every rank of it, came to its end without an error."""
    ending = run.recording.ending if run.recording is not None else None
    if ending is not None:
        return not ending.is_running and ending.exit_code == 0 and not ending.signal
    ends = [p.counts is not None and p.counts.is_end and not p.caught for p in ranks_of(run)]
    return bool(ends) and all(ends)


def training_loader(process: Process) -> Loader | None:
    """Return the loader that a process trained from first, as far as it is known."""
    trained = [e.loader for e in process.epochs if e.trained]
    loaders = {x.id: x for x in process.loaders}
    if trained:
        return loaders.get(trained[0])
    return process.loaders[0] if len(loaders) == 1 else None


def is_data_parallel(process: Process) -> bool:
    """Tell whether a model of a process is a replica, kept equal to those of the other ranks."""
    return any(name in m.wrapper for m in process.models for name in DATA_PARALLEL)


def is_sharded(process: Process) -> bool:
    """Tell whether a model of a process is spread over ranks, which then differ by design."""
    return any(
        m.is_sharded or m.type.startswith("FSDP") or "FullySharded" in m.wrapper
        for m in process.models
    )


@dataclass(frozen=True, slots=True)
class Standstill:
    """A process that made no progress any more, as it was last seen."""

    process: Process
    stall: Stall
    looks: int = 1

    @property
    def stack(self) -> tuple[Place, ...]:
        """Where the main thread stood, outermost first."""
        return self.stall.stacks[0][1] if self.stall.stacks else ()

    @property
    def place(self) -> Place | None:
        """The innermost line of the user's own code, or the innermost of all."""
        own = own_places(self.stack)
        return (own or self.stack or (None,))[-1]

    @property
    def calls(self) -> tuple[Mapping[str, object], ...]:
        """The collectives that this rank called, oldest first; not those between two ranks."""
        return tuple(c for c in self.stall.collectives if c.get("op") and not c.get("is_p2p"))

    def calls_in(self, group: str) -> dict[int, Mapping[str, object]]:
        """The collectives of one group, by number."""
        own = [c for c in self.calls if str(c.get("group", "")) == group]
        return {c["seq"]: c for c in own if isinstance(c.get("seq"), int)}  # type: ignore[misc]

    def last_call(self, group: str) -> int:
        """The number of the last call; −1 if it may not belong to the group at all."""
        return max(self.calls_in(group), default=0 if group == EVERYONE else -1)

    @property
    def pending(self) -> Mapping[str, object] | None:
        """The oldest collective that is not over."""
        waiting = (c for c in self.stall.collectives if c.get("op") and not c.get("is_retired"))
        return next(iter(waiting), None)

    @property
    def waits_for_ranks(self) -> bool:
        return self.pending is not None or self._is_in(_COLLECTIVE_FILES)

    @property
    def is_in_backward(self) -> bool:
        return any("backward" in p.function for p in self.stack) or ".backward(" in (
            self.place.code if self.place is not None else ""
        )

    @property
    def waits_for_data(self) -> bool:
        return self._is_in(_LOADER_FILES) and not self.waits_for_ranks

    @property
    def is_in_dataset(self) -> bool:
        """Whether the data loader called the user's code that it stands in."""
        is_called = any(_is_of(p, _LOADER_FILES) for p in self.stack)
        return is_called and not self.waits_for_data and not self.waits_for_ranks

    @property
    def is_saving(self) -> bool:
        return self._is_in(_SAVING_FILES)

    @property
    def waits_for_thread(self) -> bool:
        return bool(self.stack) and _is_of(self.stack[-1], _LOCK_FILES)

    @property
    def is_asking(self) -> bool:
        """Whether a person was at a prompt of it."""
        return any(_is_of(p, _PROMPT_FILES) for p in self.stack) or any(
            "input(" in p.code for p in self.stack[-1:]
        )

    def words(self) -> str:
        """Say where it stands, to follow the name of the process."""
        place = self.place
        if place is None:
            return "is at an unknown line"
        inner = self.stack[-1]
        calls = f", in {inner.function}" if inner != place and inner.function else ""
        return f"is{place_words(place)}{code_words(place)}{calls}"

    def evidence(self, says: str = "") -> Evidence:
        text = says or f"rank {self.process.rank} {self.words()} for {self.stall.waited_s:.0f} s"
        return cite_record(self.process, self.stall.line, text, step=self.stall.step)

    def _is_in(self, files: tuple[str, ...]) -> bool:
        """Tell whether what the user's innermost line calls is in one of the files."""
        for place in reversed(self.stack):
            if own_places((place,)):
                return False
            if _is_of(place, files):
                return True
        return False


def _is_of(place: Place, files: tuple[str, ...]) -> bool:
    path = place.file.replace("\\", "/")
    return any(name in path for name in files)


def own_places(places: Iterable[Place]) -> tuple[Place, ...]:
    """Return the places that are in the user's own code."""
    return tuple(p for p in places if own_frames(_failure(Caught(0, places=(p,)))))


def standstills(run: Run) -> tuple[Standstill, ...]:
    """Return the processes that stood still when the recording ended, rank 0 first.

    A pause that went on afterwards is none, nor is one that an error of its own or a proper end
    came out of. While the command still runs, a pause counts once it was seen twice.
    """
    recording = run.recording
    if recording is None or has_ended_well(run):
        return ()
    is_running = recording.ending is not None and recording.ending.is_running
    processes = ranks_of(run) or recording.processes
    found = (_standstill(p) for p in processes)
    least = LOOKS_WHILE_RUNNING if is_running else 1
    return tuple(s for s in found if s is not None and s.looks >= least)


def _standstill(process: Process) -> Standstill | None:
    if not process.stalls or process.stalls[-1].is_over or own_errors(process):
        return None
    last = process.stalls[-1]
    has_ended = process.counts is not None and process.counts.is_end
    if has_ended and not process.caught:
        return None  # it came to its end after all
    looks = 0
    for stall in reversed(process.stalls):
        if stall.is_over or stall.step != last.step:
            break
        looks += 1
    return Standstill(process, last, looks)


def own_errors(process: Process) -> tuple[Caught, ...]:
    """Return the exceptions of a process that do not merely follow from another rank's end."""
    return tuple(c for c in process.caught if standing(_failure(c)) == 0)


def echoes_in(process: Process) -> tuple[Caught, ...]:
    """Return the exceptions of a process that follow from what another rank did."""
    return tuple(c for c in process.caught if standing(_failure(c)) == 1)


def _failure(caught: Caught) -> Failure:
    frames = tuple(Frame(p.file, p.line, p.function, p.code) for p in caught.places)
    return Failure(caught.type, caught.message, "", frames=frames)


def last_step(process: Process) -> int:
    """Return the last step that is known of."""
    counted = process.counts.steps if process.counts is not None else 0
    return max([counted, *(s.step for s in process.samples)])


def place_words(place: Place | None) -> str:
    """Return where, in words that follow a claim; nothing if it is not known."""
    return "" if place is None else f" at {place.file}:{place.line}"


def code_words(place: Place | None) -> str:
    """Return the code of a line, to follow its place."""
    return f" `{place.code.strip()}`" if place is not None and place.code.strip() else ""


def caught_words(caught: Caught, limit: int = 120) -> str:
    """Return an exception as its last line in a traceback reads."""
    first = caught.message.strip().split("\n", 1)[0]
    text = f"{caught.type}: {first}" if first else caught.type
    return text if len(text) <= limit else text[: limit - 1] + "…"


def call_kind(call: Mapping[str, object]) -> tuple[str, str]:
    """Return the operation of a collective, with its sizes where all ranks must have the same."""
    name = str(call.get("op", "")).rsplit(":", 1)[-1]
    is_sized = name.lstrip("_").startswith(_SAME_SIZE) and "scatter" not in name
    return name, str(call.get("input_sizes")) if is_sized else ""


def shared_prints(ranks: Sequence[Process], field: str) -> dict[int, list[Fingerprint]]:
    """Return, by step, the fingerprints of the ranks at the steps that all have one of."""
    prints = [{f.step: f for f in p.fingerprints if getattr(f, field) is not None} for p in ranks]
    steps = set.intersection(*map(set, prints)) if prints else set()
    return {step: [of_rank[step] for of_rank in prints] for step in sorted(steps)}


def rank_series(run: Run, rank: int, name: str) -> Series | None:
    """Return a series of one rank, as far as it is finite; that of rank 0 may be the run's own."""
    found = run.get(f"ranks/{rank}/{name}")
    found = run.get(name) if found is None and rank == 0 else found
    return found.finite() if found is not None and len(found.finite()) else None


def operation_words(call: Mapping[str, object]) -> str:
    """Return a collective in words: all_reduce number 9 of shape [3]."""
    name = str(call.get("op", "")).rsplit(":", 1)[-1]
    sizes = call.get("input_sizes") or call.get("output_sizes")
    shape = sizes[0] if isinstance(sizes, (list, tuple)) and sizes else None
    of = f" of shape {list(shape)}" if isinstance(shape, (list, tuple)) else ""
    return f"{name} number {call.get('seq')}{of}"


def are_all_in_one(still: Sequence[Standstill], ranks: int) -> bool:
    """Tell whether all ranks wait in one and the same collective."""
    calls = [s.pending for s in still]
    names = {(str(c.get("op")), str(c.get("seq"))) for c in calls if c is not None}
    return len(still) == ranks > 1 and all(calls) and len(names) == 1


def has_exited_well(run: Run) -> bool:
    """Tell whether the command ended with code 0, or how it ended is not known."""
    ending = run.recording.ending if run.recording is not None else None
    return ending is None or ending.exit_code == 0


def what_it_waits_for(
    main: Standstill, still: Sequence[Standstill]
) -> tuple[str, dict[str, Strength]]:
    """Say what it waits for, and what may be behind that."""
    if main.waits_for_ranks:
        call = main.pending
        name = f" ({operation_words(call)})" if call is not None else ""
        if are_all_in_one(still, main.process.world_size):
            return f", as all ranks do{name}", {}
        guesses = suggested("", "collective-mismatch rank-failed-first", "uneven-inputs")
        return f", waiting for other ranks{name}", guesses
    if main.waits_for_data:
        guesses = suggested(moderate="worker-crash data-loading-bound")
        return ", waiting for the data loader", guesses
    if main.is_in_dataset:
        return ", making a batch", {}
    if main.is_saving:
        return ", saving", {"checkpoint-overhead": Strength.MODERATE}
    if main.waits_for_thread:
        return ", waiting for another thread or process", {}
    return "", {}


Caughts = list[tuple[Process, Caught]]


def first_error(run: Run) -> tuple[Process, Caught, list[int]] | None:
    """Return the rank that failed first, its error, and the ranks that wait for it."""
    failed = [(p, c) for p in ranks_of(run) for c in own_errors(p)]
    if not failed:
        return None
    process, caught = min(failed, key=lambda f: (isnan(f[1].time_s), f[1].time_s))
    still = {s.process.rank for s in standstills(run) if s.process.world_size > 1}
    others = sorted(still - {p.rank for p, _ in failed})
    return (process, caught, others) if others else None


def silent_ranks(run: Run) -> tuple[list[Process], Caughts] | None:
    """Return ranks that others wait for and that left no word, and the connections that broke."""
    lost = lost_connections(run)
    still = [s for s in standstills(run) if s.process.world_size > 1]
    broken = [(p, c) for p, c in lost if HUNG_UP.search(c.message)]
    if not broken and not (still and not lost and all(s.waits_for_ranks for s in still)):
        return None
    waiting = {s.process.rank for s in still} | {p.rank for p, _ in lost}
    gone = [p for p in ranks_of(run) if p.rank not in waiting]
    if not gone or any(p.stalls or (p.counts is not None and p.counts.is_end) for p in gone):
        return None
    return gone, broken


def lost_connections(run: Run) -> Caughts:
    """Return the errors by which ranks notice that another one is gone."""
    return [(p, c) for p in ranks_of(run) for c in echoes_in(p)]
