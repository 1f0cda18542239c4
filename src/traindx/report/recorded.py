"""What a recorder saw, without any judgement: the part of `traindx inspect` for recordings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from traindx.model.recording import (
    Activation,
    Ending,
    LossInput,
    Model,
    Optimizer,
    Process,
    Sample,
    Shape,
    Summary,
)
from traindx.model.run import Run
from traindx.report import words

ROWS = 24  # of the tables by parameter and by activation
PROCESSES_SHOWN = 16
GROUPS_SHOWN = 8
_NOT_SET = frozenset({"params", "parameters"})  # of a group: its members, or how many they are
_PHASES = ("data", "forward", "backward", "optimizer")

Section = tuple[str, RenderableType]


def sections(run: Run, *, verbose: bool) -> Iterator[Section]:
    """Yield what a recording shows of the command, its processes and their last look, titled."""
    recording = run.recording
    if recording is None:
        return
    if recording.ending is not None:
        yield "Command", _command(recording.ending)
    if recording.processes:
        title = f"Recorded processes: {len(recording.processes)}"
        yield title, _processes(recording.processes, verbose=verbose)
    main = recording.main
    if main is None:
        return
    if main.models or main.optimizers:
        yield "Model and optimizer", Group(*_model_lines(main))
    if (timed := _times(run)) is not None:
        yield "Steps", timed
    if main.samples:
        yield from _sample_sections(main.samples, verbose=verbose)


def _command(ending: Ending) -> RenderableType:
    lines = [Text(words.clean(" ".join(ending.command), 400))] if ending.command else []
    return Group(*lines, Text(how_it_ended(ending), "dim"))


def how_it_ended(ending: Ending) -> str:
    """Return how a command ended in a sentence."""
    took = ending.ended_s - ending.started_s
    after = f" after {_duration(took)}" if math.isfinite(took) else ""
    if ending.is_running:
        return "still running, or its parent was killed"
    if ending.signal is not None:
        return f"ended by signal {ending.signal}{after}"
    if ending.exit_code is not None:
        return f"ended with exit code {ending.exit_code}{after}"
    return "how it ended is not known"


def _processes(processes: Sequence[Process], *, verbose: bool) -> RenderableType:
    lines = []
    for process in processes if verbose else processes[:PROCESSES_SHOWN]:
        line = Text(f"rank {process.rank} of {process.world_size}, process {process.pid}")
        about = [f"Python {process.python}", f"torch {process.torch}", process.host]
        line.append(f"  {', '.join(words.clean(a, 60) for a in about if a.strip())}", "dim")
        lines.append(line)
        if process.counts is not None:
            lines.append(Text(f"  {_counted(process)}"))
        if process.counts is not None and process.counts.why_off:
            why = words.clean(process.counts.why_off, 300)
            lines.append(Text(f"  the recorder turned itself off: {why}", "yellow"))
    rest = len(processes) - PROCESSES_SHOWN
    if rest > 0 and not verbose:
        lines.append(Text(f"and {rest} more (--verbose)", "dim"))
    return Group(*lines)


def _counted(process: Process) -> str:
    counts = process.counts
    if counts is None:
        return ""
    told = [
        words.counted(counts.steps, "step"),
        f"{counts.backwards} times backward",
        f"{counts.samples} looked at closely",
    ]
    if math.isfinite(counts.overhead):
        told.append(f"overhead {100 * counts.overhead:.2g} %")
    if counts.has_moved is False:
        told.append("no weight ever changed")
    return ", ".join(told)


def _model_lines(process: Process) -> Iterator[Text]:
    for model in {m.id: m for m in process.models}.values():
        yield Text(_model(model))
    for optimizer in {o.id: o for o in process.optimizers}.values():
        yield from _optimizer(optimizer)
    for loader in process.loaders[:4]:
        size = "unknown size" if loader.size is None else f"{loader.size} examples"
        mix = "shuffled" if loader.is_shuffled else "in order"
        name = words.clean(loader.dataset or "data", 60)
        batch = f", batches of {loader.batch_size}" if loader.batch_size else ""
        yield Text(f"{name}: {size}{batch}, {mix}, {words.counted(loader.workers, 'worker')}")


def _model(model: Model) -> str:
    size = sum(math.prod(p.shape) for p in model.parameters)
    frozen = sum(math.prod(p.shape) for p in model.parameters if not p.is_trainable)
    told = [f"{size:,} parameters in {words.counted(len(model.parameters), 'tensor')}"]
    if frozen:
        told.append(f"{frozen:,} of them frozen")
    marks = [model.wrapper, "compiled" * model.is_compiled, "sharded" * model.is_sharded]
    told += [words.clean(mark, 60) for mark in marks if mark]
    return f"{words.clean(model.type or 'model', 80)}: {', '.join(told)}"


def _optimizer(optimizer: Optimizer) -> Iterator[Text]:
    name = words.clean(optimizer.type or "optimizer", 80)
    groups = words.counted(len(optimizer.groups), "group")
    line = Text(f"{name}: {words.counted(optimizer.size, 'tensor')} in {groups}")
    if optimizer.strangers:
        line.append(f", {optimizer.strangers} of them in no known model", "yellow")
    yield line
    for group in optimizer.groups[:GROUPS_SHOWN]:
        told = [
            f"{words.clean(key, 40)} {_value(value)}"
            for key, value in group.items()
            if value is not None and value is not False and key not in _NOT_SET
        ]
        held = group.get("parameters")
        told += [words.counted(held, "tensor")] if isinstance(held, int) else []
        yield Text(f"  {', '.join(told[:12])}", "dim")


def _value(value: object) -> str:
    if isinstance(value, float):
        return words.number(value)
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_value(item) for item in value[:6])})"
    return words.clean(value, 40)


def _times(run: Run) -> RenderableType | None:
    whole = run.get("time/step")
    if whole is None:
        return None
    first, last = float(whole.steps[0]), float(whole.steps[-1])
    covers = f"step {words.step(first)} to {words.step(last)}"
    total = float(np.median(whole.values))
    line = Text(f"{words.counted(len(whole), 'step')} timed, {covers}; median {_duration(total)}")
    parts = []
    for phase in _PHASES:
        series = run.get(f"time/{phase}")
        if series is not None and total > 0:
            spent = float(np.median(series.values))
            parts.append(f"{phase} {_duration(spent)} ({100 * spent / total:.0f} %)")
    return Group(line, Text("  " + ", ".join(parts), "dim"))


def _sample_sections(samples: Sequence[Sample], *, verbose: bool) -> Iterator[Section]:
    latest = {sample.optimizer: sample for sample in samples}
    for sample in latest.values():
        of = f", optimizer {sample.optimizer}" if len(latest) > 1 else ""
        yield (
            f"Last look at parameters: step {sample.step}{of}",
            _parameters(sample, verbose=verbose),
        )
        if sample.activations:
            yield f"Activations{of}", _activations(sample.activations, verbose=verbose)
        if sample.losses or sample.batch:
            lines = [Text(f"batch {describe(s)}") for s in sample.batch[:8]]
            lines += [line for told in sample.losses[:8] for line in _loss(told)]
            yield f"What entered the loss{of}", Group(*lines)


def _parameters(sample: Sample, *, verbose: bool) -> RenderableType:
    table = _table("parameter", "gradient", "weight", "update")
    count = len(sample.names)
    shown = range(count) if verbose else _ends(count)
    for i in shown:
        moved = _at(sample.has_moved, i)
        update = _number(_at(sample.update_ratios, i))
        table.add_row(
            words.clean(sample.names[i], 60),
            _number(_at(sample.grad_norms, i), "none"),
            _number(_at(sample.weight_norms, i)),
            f"{update} did not move" if moved is False else update,
        )
    return _with_rest(table, count - len(shown))


def _activations(activations: Sequence[Activation], *, verbose: bool) -> RenderableType:
    table = _table("after", "operation", "mean", "std", "range", "")
    shown = range(len(activations)) if verbose else _ends(len(activations))
    for i in shown:
        a = activations[i]
        marks = [f"{100 * a.dead:.0f} % dead"] if a.dead > 0 else []
        marks += [f"{100 * a.saturated:.0f} % saturated"] if a.saturated > 0 else []
        marks += [f"{a.nonfinite} no numbers"] if a.nonfinite else []
        marks += [f"{a.masked_rows} rows all masked"] if a.masked_rows else []
        span = f"{words.number(a.low)} to {words.number(a.high)}"
        told = (words.number(a.mean), words.number(a.std), span, ", ".join(marks))
        table.add_row(words.clean(a.name, 50), words.clean(a.op, 30), *told)
    return _with_rest(table, len(activations) - len(shown))


def _loss(told: LossInput) -> Iterator[Text]:
    made = f", made by {words.clean(told.producer, 40)}" if told.producer else ""
    yield Text(f"{words.clean(told.loss, 40)}: {describe(told.prediction)}{made}")
    if told.target is not None:
        yield Text(f"  {describe(told.target)}")
    if told.broadcast:
        yield Text(f"  broadcast {' and '.join(shape(s) for s in told.broadcast[:4])}")
    if told.labels:
        yield Text(f"  labels {_counts(told.labels)}", "dim")
    if told.predictions:
        yield Text(f"  predicted {_counts(told.predictions)}", "dim")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{words.clean(k, 20)}: {v}" for k, v in list(counts.items())[:10])


def describe(summary: Summary) -> str:
    """Return what is known of a tensor on one line."""
    told = [f"{words.clean(summary.name, 60)} {shape(summary.shape)}".strip()]
    told += [words.clean(t, 30) for t in (summary.dtype, summary.device) if t and t != "cpu"]
    if math.isfinite(summary.low) or math.isfinite(summary.high):
        told.append(f"{words.number(summary.low)} to {words.number(summary.high)}")
    if math.isfinite(summary.mean):
        told.append(f"mean {words.number(summary.mean)}")
    if summary.nonfinite:
        told.append(f"{summary.nonfinite} NaN or Inf")
    return ", ".join(told)


def shape(sizes: Shape) -> str:
    """Return a shape as torch prints it."""
    return f"[{', '.join(map(str, sizes))}]"


def _table(*heads: str) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row(*(Text(head, "dim") for head in heads))
    return table


def _with_rest(table: Table, rest: int) -> RenderableType:
    return Group(table, *([Text(f"and {rest} more (--verbose)", "dim")] if rest > 0 else []))


def _ends(count: int) -> Sequence[int]:
    """Return the first and the last of many, for layers differ most between the two."""
    half = ROWS // 2
    return range(count) if count <= ROWS else [*range(half), *range(count - half, count)]


def _at(column: Sequence[float | None], i: int) -> float | None:
    return column[i] if i < len(column) else None


def _number(value: float | None, absent: str = "") -> str:
    return absent if value is None else words.number(value)


def _duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} µs"
    if seconds < 1.0:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 120.0:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
