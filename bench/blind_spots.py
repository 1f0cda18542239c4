"""Where the program model loses sight, counted by programs and shown by construct, never by fault.

    python -m bench.blind_spots [--most N] PATH …

A path is one program: a file or a folder. A folder that holds programs with a `label.json` is each
of these. A line is one way of losing sight and the number of programs that it happens in:

- `callee`: something is called that is not known, or a method of a value that is not
- `constant`: all that a call is given is written down, and what it gives is not known
- `shape`, `dtype`: what is given has a known one, and the result has none: the call loses it
- `forward`: the output of a model has no known shape, dtype or device
- `labels`: the target of a loss has no known dtype or range
- `act`: torch trains, and no loop, forward pass, loss, backward pass or step is found
- `loop`: a loop with a forward pass has no known unit or phase
- `guard`: a condition of constants is not decided
- `function`: it is never entered
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    FunctionValue,
    Items,
    Known,
    Part,
    Result,
    Unknown,
    Value,
    origins,
)
from traindx.analysis.program.shapes.values import ShapedTensor
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.losses import all_losses
from traindx.analysis.program.training.phases import Phase, Unit, loops_of, training_loops
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.model.run import Run
from traindx.readers.source_tree import open_sources

MOST = 40  # lines of each way
TRAINS = ("torch.nn", "torch.optim", "from torch import nn")


def main() -> int:
    """Print the ways of losing sight, the commonest first."""
    given = sys.argv[1:]
    most = int(given[given.index("--most") + 1]) if "--most" in given else MOST
    paths = [a for i, a in enumerate(given) if a != "--most" and given[i - 1 : i] != ["--most"]]
    total: Counter[tuple[str, str]] = Counter()
    programs = 0
    for path in (p for a in paths for p in programs_in(Path(a))):
        programs += 1
        total.update(set(blind_spots(open_sources([str(path)]))))
    print(f"{programs} programs")
    for way in sorted({way for way, _ in total}):
        print(f"\n{way}")
        found = [(what, count) for (kind, what), count in total.most_common() if kind == way]
        for what, count in found[:most]:
            print(f"  {count:5d}  {what}")
    return 0


def programs_in(path: Path) -> list[Path]:
    """Return the programs of a folder; a folder without labels is one."""
    return sorted(label.parent for label in path.rglob("label.json")) or [path]


def blind_spots(run: Run) -> Iterator[tuple[str, str]]:
    """Yield each way in which sight is lost in a program, with what loses it."""
    program = program_of(run)
    for story in program.stories:
        for event in story.events:
            yield from _of_event(story, event)
        yield from _of_training(story)
    yield from _never_done(program)
    yield from _never_entered(program)


def _of_event(story: Story, event: ProgramEvent) -> Iterator[tuple[str, str]]:
    for guard in event.guards:
        if guard.test is not None and _is_constant(guard.test):
            yield "guard", _maker(guard.test)
    result = event.result
    if event.act is not EventForm.CALL or event.is_own or not isinstance(result, Result):
        return
    if event.name == "()" and isinstance(event.receiver, (Unknown, Part)):
        yield "callee", f"() of {_kind(event.receiver)}"
    elif isinstance(event.receiver, Unknown):
        yield "callee", f"{event.name} of {_kind(event.receiver)}"
    given = [v for v in result.inputs if not isinstance(v, FunctionValue)]
    if given and all(map(_is_written, given)) and not event.name.startswith("torch."):
        yield "constant", event.name
    tensors = [story.shapes.of(v) for v in given]
    seen = [t for t in tensors if isinstance(t, ShapedTensor)]
    if seen and all(not t.shape.is_open for t in seen):
        found = story.shapes.of(result)
        if not isinstance(found, ShapedTensor) and not _says(found):
            yield "shape", f"{_called(event)} gives nothing"
        elif isinstance(found, ShapedTensor) and found.shape.is_open:
            yield "shape", f"{_called(event)} gives no sizes"
    typed = [e for e in map(story.dtypes.of, given) if e is not None and e.holder != "number"]
    if typed and story.dtypes.of(result) is None:
        yield "dtype", _called(event)


def _says(found: object) -> bool:
    return isinstance(found, (int, float, str, tuple)) or type(found).__name__ in (
        "Size", "SizesOf", "Several")  # fmt: skip


def _of_training(story: Story) -> Iterator[tuple[str, str]]:
    for deed in story.does(Do.FORWARD):
        output = deed.event.result
        asked = {"shape": story.shapes.shape, "dtype": story.dtypes.of, "device": story.places.of}
        for what, question in asked.items():
            if not deed.event.within and not isinstance(output, Items) and question(output) is None:
                yield "forward", f"no {what}"
    for loss in all_losses(story):
        target = loss.argument("target", 1)
        for what, asks in {"dtype": story.dtypes.of, "range": story.ranges.of}.items():
            if target is not None and asks(target) is None:
                yield "labels", f"no {what}: {_first_lost(target, partial(_is_told, asks))}"
    for loop in loops_of(story):
        if loop.does(Do.FORWARD):
            if loop.unit is Unit.OTHER:
                yield "loop", "no unit"
            if loop.phase is Phase.UNKNOWN:
                yield "loop", "no phase"


def _is_told(asks: object, value: Value) -> bool:
    return callable(asks) and asks(value) is not None


def _first_lost(value: Value, is_told: partial[bool]) -> str:
    """Return what made the value where the search for an answer ends: nothing below it is known."""
    for found in origins(value, 200):
        below = [v for v in found.inputs if not isinstance(v, Known)]
        if not is_told(found) and (not below or any(map(is_told, below))):
            return _maker(found)
    return _maker(value)


def _never_done(program: Program) -> Iterator[tuple[str, str]]:
    if not any(t in m.text for m in program.project.modules for t in TRAINS):
        return
    done = {d.do for s in program.stories for d in s.deeds}
    for do in (Do.FORWARD, Do.BACKWARD, Do.STEP):
        if do not in done:
            yield "act", f"no {do.value}"
    if not any(training_loops(s) for s in program.stories):
        yield "act", "no training loop"
    if not any(all_losses(s) for s in program.stories):
        yield "act", "no loss"
    for story in program.stories:
        if story.execution.gave_up:
            yield "act", f"gave up: {story.execution.gave_up}"


def _never_entered(program: Program) -> Iterator[tuple[str, str]]:
    reached = {e.function for s in program.stories for e in s.events}
    reached |= {e.function for s in program.stories for x in s.execution.examples for e in x.events}
    for module in program.project.modules:
        for node in module.nodes(ast.FunctionDef):
            if node not in reached and any(isinstance(n, ast.Call) for n in ast.walk(node)):
                is_method = module.class_of(node) is not None
                is_special = node.name.startswith("__") or node.name in ("forward", "step")
                yield "function", node.name if is_special else ("method" if is_method else "plain")


def _is_written(value: Value) -> bool:
    if isinstance(value, Items):
        return value.is_whole and all(map(_is_written, value.members))
    return isinstance(value, Known)


def _is_constant(value: Value) -> bool:
    inputs: Iterable[Value] = [v for v in origins(value, 50) if not v.inputs]
    return bool(value.inputs) and all(isinstance(v, Known) for v in inputs)


def _called(event: ProgramEvent) -> str:
    is_layer = event.name == "()" and isinstance(event.receiver, Result)
    return f"() of {_maker(event.receiver)}" if is_layer and event.receiver else event.name


def _maker(value: Value) -> str:
    if isinstance(value, Part):
        return f"part {value.key if isinstance(value.key, int) else '.…'} of {_maker(value.of)}"
    return value.maker if isinstance(value, Result) else _kind(value)


def _kind(value: Value) -> str:
    return type(value).__name__


if __name__ == "__main__":
    sys.exit(main())
