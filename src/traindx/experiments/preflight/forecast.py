"""What a short rerun says about the whole: how long it will take, and how much memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from traindx.analysis.errors.memory_sizes import memory_words
from traindx.analysis.recordings.observations import processes_of
from traindx.causes.facts import RUN_LENGTHS
from traindx.experiments.preflight.checks import passed, unjudged
from traindx.model.findings import Severity, cite
from traindx.model.preflight import Check, Outcome
from traindx.model.recording import Loader, Process
from traindx.model.run import Floats, Run, Series, as_number

MEMORY = ("memory", "memory suffices for the whole run")
DURATION = ("duration", "time and waiting for data")

EPOCHS = ("epochs", "num_epochs", "n_epochs", "max_epochs", "num_train_epochs", "nb_epochs")
BEGINNING = 0.3  # of the samples: pools and caches are filled in them
FEW = 4  # samples after the beginning
LEAST_GROWTH = 64 << 20  # bytes; allocators move by less without any leak
STILL_GROWING = 0.5  # of the average pace, in each half
FULL = 0.95  # of the machine
TIGHT = 0.85
WAITING = 0.5  # of a step
LONG_STEP_S = 0.02  # shorter ones are mostly overhead of any loader


@dataclass(frozen=True, slots=True)
class RunLength:
    """How many steps the whole run will take, and how that is known; 0 where it is not."""

    steps: int = 0
    epoch_steps: int = 0
    known_by: str = ""


# --- how long the run is --------------------------------------------------------------------------


def plan_of(run: Run, *, is_complete: bool = False) -> RunLength:
    """Return how long the whole run is: by its end, its arguments, its config or its source."""
    process = next(iter(processes_of(run)), None)
    if process is None:
        return RunLength()
    taken = process.counts.steps if process.counts is not None else 0
    per_epoch = _epoch_steps(process)
    if is_complete:
        return RunLength(taken, per_epoch, "it ran to its end")
    if len({o.id for o in process.optimizers}) > 1:
        return RunLength()  # in turns, or one stage after another: a pass does not tell
    made = _planned(run, process, per_epoch)
    return made if made.steps >= taken else RunLength(0, per_epoch)


def _planned(run: Run, process: Process, per_epoch: int) -> RunLength:
    for steps, how in _lengths(run, process, RUN_LENGTHS):
        return RunLength(int(steps), per_epoch, how)
    if per_epoch:
        epochs = [*_lengths(run, process, EPOCHS), *_looped(run)]
        for count, how in epochs:
            says = f"{how}, {count:g} passes of {per_epoch} steps"
            return RunLength(int(count * per_epoch), per_epoch, says)
    return RunLength(0, per_epoch, "")


def _epoch_steps(process: Process) -> int:
    """Return the optimizer steps of one pass over the data that is trained on."""
    whole = [e.trained for e in process.epochs if e.is_whole and e.trained]
    if whole:
        return max(whole)  # a batch that is fetched ahead makes the first seem shorter
    loader = _training_loader(process)
    steps = process.counts.steps if process.counts is not None else 0
    if loader is None or not loader.batches or not steps:
        return 0
    backwards = process.counts.backwards if process.counts is not None else steps
    return int(loader.batches * min(1.0, steps / max(1, backwards)))  # less where they accumulate


def _training_loader(process: Process) -> Loader | None:
    """Return the loader that is trained from; None where that is not clear."""
    tested = {e.loader for e in process.epochs if not e.trained}
    tested |= {e.loader for e in process.evaluations if e.loader is not None}
    left = [loader for loader in process.loaders if loader.id not in tested]
    return left[0] if len(left) == 1 else None


def _lengths(run: Run, process: Process, names: Sequence[str]) -> Iterator[tuple[float, str]]:
    for key, text in _arguments(process.argv):
        number = as_number(text)
        if key.replace("-", "_") in names and number is not None and number > 0:
            yield number, f"--{key} {text}"
    for name in names:
        found = run.config.number(name)
        if found is not None and found > 0:
            yield found, f"{name} = {found:g}"


def _arguments(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    for i, word in enumerate(argv):
        match = re.fullmatch(r"(?:--?)?([\w.-]*[A-Za-z_])=(.+)", word)
        if match:
            yield match[1].rsplit(".", 1)[-1], match[2]
        elif word.startswith("--") and i + 1 < len(argv):
            yield word[2:], argv[i + 1]


def _looped(run: Run) -> Iterator[tuple[float, str]]:
    """Yield the passes that a loop over epochs is written to take."""
    for source in run.sources:
        try:
            tree = ast.parse(source.text)
        except (SyntaxError, ValueError):
            continue
        numbers = _constants(tree)
        for node in ast.walk(tree):
            if isinstance(node, (ast.For, ast.comprehension)) and _is_epoch(node.target):
                count = _range_of(node.iter, numbers)
                if count:
                    yield count, f"the loop in {_file_name(source.path)}"
        yield from _trainer_epochs(tree, numbers, source.path)


def _trainer_epochs(
    tree: ast.AST, numbers: dict[str, float], path: str
) -> Iterator[tuple[float, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in EPOCHS:
            count = _number_of(node.value, numbers)
            if count:
                yield count, f"{node.arg} in {_file_name(path)}"


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _constants(tree: ast.AST) -> dict[str, float]:
    """Return the names that are given one number and nothing else."""
    found: dict[str, set[float | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            value = as_number(node.value.value) if isinstance(node.value, ast.Constant) else None
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, set()).add(value)
    single = {name: next(iter(values)) for name, values in found.items() if len(values) == 1}
    return {name: value for name, value in single.items() if value is not None}


def _is_epoch(target: ast.AST) -> bool:
    return isinstance(target, ast.Name) and "epoch" in target.id.lower()


def _range_of(node: ast.AST, numbers: dict[str, float]) -> float | None:
    is_range = isinstance(node, ast.Call) and ast.unparse(node.func) in ("range", "trange")
    if not isinstance(node, ast.Call) or not is_range or not 1 <= len(node.args) <= 2:
        return None
    ends = [_number_of(argument, numbers) for argument in node.args]
    if any(end is None for end in ends):
        return None
    known = [end for end in ends if end is not None]
    return known[-1] - (known[0] if len(known) == 2 else 0.0)


def _number_of(node: ast.AST, numbers: dict[str, float]) -> float | None:
    if isinstance(node, ast.Constant):
        return as_number(node.value)
    return numbers.get(node.id) if isinstance(node, ast.Name) else None


# --- memory ---------------------------------------------------------------------------------------


def memory(run: Run, plan: RunLength, available: int | None) -> Check:
    """Say how much memory the whole run will need, against what the machine has."""
    series = run.get("memory/rss")
    if series is None or len(series) < 2:
        return unjudged(*MEMORY, "memory was not measured in enough steps")
    peak = float(series.values.max())
    held = f"{memory_words(peak)} at most in {int(series.steps[-1])} steps"
    device = run.get("memory/device")
    if device is not None and device.values.max() > 0:
        held += f", {memory_words(float(device.values.max()))} on the device"
    left = "" if _is_evaluated(run) else "; no evaluation was met"
    pace = pace_of(series)
    if available is None:
        return unjudged(*MEMORY, f"{held}{left}; what the machine has is not known")
    held += f", of {memory_words(available)}"
    if not pace:
        cited = cite(series, f"{held}, no steady growth", 0, -1, peak=peak)
        if peak > TIGHT * available:
            return unjudged(*MEMORY, f"{held}: that is tight{left}", cited)
        return passed(*MEMORY, f"{held}, no steady growth{left}", cited)
    return _growing(run, series, plan, available, pace, held)


def _growing(
    run: Run, series: Series, plan: RunLength, available: int, pace: float, held: str
) -> Check:
    last = float(series.values[-1])
    until = int(series.steps[-1] + max(0.0, FULL * available - last) / pace)
    grows = f"{held}, growing by {memory_words(pace)} per step"
    cited = cite(series, grows, 0, -1, bytes_per_step=pace)
    # what a cache takes in its first pass over the data, it does not take again
    is_past_a_pass = any(e.is_whole and e.trained for p in processes_of(run) for e in p.epochs)
    horizon = plan.steps if is_past_a_pass else min(plan.steps, plan.epoch_steps)
    if horizon > until:
        says = f"{grows}: it is full after {until} of {plan.steps} steps ({plan.known_by})"
        fix = "keep numbers in place of tensors (loss.item()), and bound lists and caches"
        return Check(*MEMORY, Outcome.FAILED, says, (cited,), Severity.HIGH, fix)
    told = "" if plan.steps > until else f"; {plan.steps} are planned" if plan.steps else ""
    return unjudged(*MEMORY, f"{grows}: at that pace it is full after {until} steps{told}", cited)


def pace_of(series: Series) -> float:
    """Return by how many bytes a step memory grows; 0 unless it grows throughout."""
    begin = int(BEGINNING * len(series))
    steps, values = series.steps[begin:], series.values[begin:]
    if len(values) < FEW or steps[-1] <= steps[0]:
        return 0.0
    growth = float(values[-1] - values[0])
    if growth < LEAST_GROWTH or not _is_throughout(steps, values, growth):
        return 0.0
    return growth / float(steps[-1] - steps[0])


def _is_throughout(steps: Floats, values: Floats, growth: float) -> bool:
    """Tell whether memory rises in each half at about the same pace, and is never given back."""
    edges = np.linspace(float(steps[0]), float(steps[-1]), 3)
    floor = np.interp(edges, steps, np.minimum.accumulate(values[::-1])[::-1])
    return bool((np.diff(floor) >= STILL_GROWING * growth / 2).all())


def _is_evaluated(run: Run) -> bool:
    return any(p.evaluations for p in processes_of(run))


# --- time -----------------------------------------------------------------------------------------


def duration(
    run: Run, plan: RunLength, first_step_s: float | None, *, is_complete: bool = False
) -> Check:
    """Say how long a step takes, how much of it waits for data, and how long the whole will."""
    step, data = run.get("time/step"), run.get("time/data")
    if step is None or len(step.finite()) < FEW:
        return unjudged(*DURATION, "too few steps were timed")
    usual = float(np.median(step.finite().values[1:]))
    waiting = 0.0
    if data is not None and len(data) == len(step) and usual > 0:
        waits = data.values[1:] / np.maximum(step.values[1:], 1e-9)
        waiting = float(np.nanmedian(waits))
    says = f"{time_words(usual)} a step, {waiting:.0%} of it waiting for data"
    if is_complete:
        says += "; it ran to its end"
    elif plan.steps:
        whole = plan.steps * float(np.mean(step.finite().values[1:])) + (first_step_s or 0.0)
        says += f"; about {time_words(whole)} for {plan.steps} steps ({plan.known_by})"
    elif plan.epoch_steps:
        says += f"; about {time_words(plan.epoch_steps * usual)} per pass over the data"
    else:
        says += "; how many steps are planned is not known"
    if not _is_evaluated(run):
        says += "; no evaluation was met"
    cited = cite(step, says, 0, -1, step_s=usual, waiting=waiting)
    if waiting > WAITING and usual >= LONG_STEP_S:
        return unjudged(*DURATION, f"{says}: more workers would pay", cited)
    return passed(*DURATION, says, cited)


def time_words(seconds: float) -> str:
    """Return a duration as a person says it."""
    if not isfinite(seconds):
        return "unknown time"
    if seconds < 1.0:
        return f"{1000 * seconds:.3g} ms"
    if seconds < 120.0:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
