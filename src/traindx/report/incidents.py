"""What was kept when something went wrong: the exception, the batch, the operation, the stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from traindx.model.recording import Caught, NonFinite, Place, Stall
from traindx.model.run import Run, Tensor
from traindx.report import words
from traindx.report.recorded import Section, describe, shape

SHOWN = 5  # incidents of one kind
TENSORS_SHOWN = 24
FRAMES_SHOWN = 12
THREADS_SHOWN = 6

Kept = Mapping[str, tuple[tuple[Tensor, ...], tuple[str, ...]]]


def sections(run: Run, kept: Kept, *, verbose: bool) -> Iterator[Section]:
    """Yield every incident of a recording under a title."""
    processes = run.recording.processes if run.recording is not None else ()
    for process in processes:
        rank = f" on rank {process.rank}" if process.world_size > 1 else ""
        for caught in process.caught[:SHOWN]:
            body = Group(*_caught(caught, verbose=verbose), *_batch(caught.kept, kept))
            yield f"Exception{rank} at step {caught.step}", body
        for broken in process.nonfinite[:SHOWN]:
            body = Group(*_non_finite(broken), *_batch(broken.kept, kept))
            yield f"First NaN or Inf{rank}: step {broken.step}", body
        for stall in process.stalls[-SHOWN:]:
            yield f"Standstill{rank} at step {stall.step}", _stall(stall, verbose=verbose)
    ending = run.recording.ending if run.recording is not None else None
    if ending is not None and ending.last_stack.strip():
        yield "Last stacks", _stack_text(ending.last_stack, verbose=verbose)


def _caught(caught: Caught, *, verbose: bool) -> Iterator[Text]:
    line = Text(words.clean(caught.type, 80), "red")
    line.append(f": {words.clean(caught.message, 600)}", "")
    yield line.append(f" (thread {words.clean(caught.thread, 60)})" if caught.thread else "", "dim")
    yield from _places(caught.places)
    if caught.modules:
        yield Text("through the modules", "dim")
        for name, kind, shapes in caught.modules[:TENSORS_SHOWN]:
            given = ", ".join(shape(s) for s in shapes)
            yield Text(f"  {words.clean(name or 'model', 60)} ({words.clean(kind, 60)})  {given}")
    limit = len(caught.tensors) if verbose else TENSORS_SHOWN
    where = ""
    for place, summary in caught.tensors[:limit]:
        if place != where:
            where = place
            yield Text(f"tensors in {words.clean(place, 80)}", "dim")
        yield Text(f"  {describe(summary)}")
    if len(caught.tensors) > limit:
        yield Text(f"and {len(caught.tensors) - limit} more (--verbose)", "dim")


def _places(places: Sequence[Place]) -> Iterator[Text]:
    for place in places[-FRAMES_SHOWN:]:
        yield _place(place)


def _place(place: Place) -> Text:
    inside = f" in {words.clean(place.function, 60)}" if place.function else ""
    text = Text(f"  {words.clean(place.file, 100)}:{place.line}{inside}")
    return text.append(f"  {words.clean(place.code, 120)}", "dim")


def _batch(folder: str, kept: Kept) -> Iterator[Text]:
    if not folder:
        return
    tensors, notes = kept.get(folder, ((), ()))
    yield Text(f"the batch was kept in {words.clean(folder, 120)}", "dim")
    for tensor in tensors[:TENSORS_SHOWN]:
        told = [
            f"{words.clean(tensor.name, 60)} {shape(tensor.shape)}",
            words.clean(tensor.dtype, 30),
        ]
        if {"min", "max"} <= tensor.statistics.keys():
            low, high = tensor.statistics["min"], tensor.statistics["max"]
            told.append(f"{words.number(low)} to {words.number(high)}")
        yield Text(f"  {', '.join(told)}")
    for note in notes:
        yield Text(f"  {words.clean(note, 200)}", "yellow")


def _non_finite(broken: NonFinite) -> Iterator[Text]:
    found = [words.clean(t, 80) for t in (broken.op, broken.module, broken.parameter) if t]
    phase = f" in the {words.clean(broken.phase, 40)}" if broken.phase else ""
    where = f": {', '.join(found)}" if found else ""
    yield Text(f"seen in the {words.clean(broken.seen_in, 40)}, began{phase or ' unknown'}{where}")
    if broken.why:
        yield Text(f"  {words.clean(broken.why, 300)}")
    if broken.place is not None:
        yield _place(broken.place)
    for summary in broken.inputs[:8]:
        yield Text(f"  input {describe(summary)}")
    exact = "the replay gave the same" if broken.is_exact else "the replay differed"
    yield Text(f"  {exact}", "dim")


def _stall(stall: Stall, *, verbose: bool) -> RenderableType:
    outcome = "; it went on afterwards" if stall.is_over else ""
    usual = f"a step usually takes {words.number(stall.median_s)} s"
    lines = [Text(f"no progress for {words.number(stall.waited_s)} s, {usual}{outcome}")]
    for name, places in stall.stacks if verbose else stall.stacks[:THREADS_SHOWN]:
        lines.append(Text(f"thread {words.clean(name, 60)}", "dim"))
        lines += _places(places)
    for collective in stall.collectives[-4:]:
        told = ", ".join(f"{k} {v}" for k, v in list(collective.items())[:8])
        lines.append(Text(f"collective {words.clean(told, 200)}", "dim"))
    return Group(*lines)


def _stack_text(text: str, *, verbose: bool) -> RenderableType:
    lines = words.clean_block(text).rstrip().split("\n")
    shown = lines[: 400 if verbose else 2 * FRAMES_SHOWN]
    rest = len(lines) - len(shown)
    more = [Text(f"and {rest} lines more (--verbose)", "dim")] if rest else []
    return Group(*(Text(line[:200]) for line in shown), *more)
