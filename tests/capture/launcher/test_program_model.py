"""The program model against what really happened: what it says of a program is what was recorded.

No other tool can be asked; so small programs run under the recorder, and mode, gradients, order and
place of what the model says they do are compared with the recording. Unknown is no contradiction.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.programs import PROGRAMS, cases
from forking import fork_each

from traindx import open_run
from traindx.analysis.program.execution.values import Answer, Instance, Result, Value, options_of
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.phases import training_loops
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.recording import Place, Process

APART = ("lightning", "hf_", "accelerate", "compiled", "workers")


def story_of(program: str) -> Story:
    """The story of a program as a script."""
    text = (PROGRAMS / program).read_text()
    return program_of(make_run(sources={program: text})).stories[0]


def at(story: Story, place: Place | None, do: Do) -> list[Deed]:
    """What a story does on the line that a record names."""
    if place is None:
        return []
    return [d for d in story.does(do) if d.event.module.name == Path(place.file).stem
            and d.event.location.line <= place.line <= d.event.location.end_line]  # fmt: skip


def contradicts(answer: Answer, fact: bool | None) -> bool:
    return fact is not None and answer is not Answer.UNKNOWN and answer is not Answer.of(fact)


def of_training(story: Story, process: Process) -> Iterator[str]:
    """What the model says otherwise of training steps."""
    for sample in process.samples[:40]:
        if sample.place is not None and not at(story, sample.place, Do.BACKWARD):
            yield f"backward at line {sample.place.line} is not seen"
            return
    modes = {s.is_training for s in process.samples if s.is_training is not None}
    for loop in training_loops(story) if len(modes) == 1 else ():
        for deed in loop.does(Do.FORWARD):
            is_step = deed.event.gradients is Answer.YES and not deed.event.within
            learns = any(d.event.turns == deed.event.turns for d in loop.does(Do.BACKWARD))
            if is_step and learns and contradicts(deed.event.is_training, next(iter(modes))):
                yield f"line {deed.event.location.line}: training mode is {modes}"
                return


def of_optimizers(story: Story, process: Process) -> Iterator[str]:
    """What the model says otherwise of optimizers: which were stepped, and what they hold."""
    made = {o.type for o in process.optimizers if process.samples}
    stepped = {_type(o) for d in story.does(Do.STEP) if d.subject for o in options_of(d.subject)}
    own = story.execution.module.classes.keys()  # their steps are followed into
    for missing in made - stepped - own if story.does(Do.STEP) else ():
        yield f"a step of {missing} is not seen"


def _type(value: Value) -> str:
    if isinstance(value, Instance):
        return value.cls.node.name
    return value.maker.rsplit(".", 1)[-1] if isinstance(value, Result) else "?"


def of_evaluation(story: Story, process: Process) -> Iterator[str]:
    for seen in process.evaluations:
        found = at(story, seen.place, Do.FORWARD)
        outer = [d.event for d in found if not d.event.within]
        if outer and all(contradicts(e.is_training, seen.is_training) for e in outer):
            yield f"line {outer[0].location.line}: evaluated in training mode: {seen.is_training}"
        if outer and all(contradicts(e.gradients, seen.has_grad) for e in outer):
            yield f"line {outer[0].location.line}: evaluated with gradients: {seen.has_grad}"


def test_what_the_model_says_was_recorded(tmp_path: Path) -> None:
    chosen = [c for c in cases() if not c.launcher and not c.program.startswith(APART)]
    chosen = list({c.program: c for c in chosen if not c.arguments}.values())
    assert len(chosen) > 40
    fork_each(tmp_path, [c.program for c in chosen])
    wrong, seen = [], 0
    for case in chosen:
        run = open_run(tmp_path / case.name.replace(" ", "-"))
        story = story_of(case.program)
        for process in run.recording.processes if run.recording is not None else ():
            found = [
                *of_training(story, process),
                *of_optimizers(story, process),
                *of_evaluation(story, process),
            ]
            seen += 1
            wrong += [f"{case.program}: {words}" for words in found]
    assert seen > 40
    assert not wrong, "\n".join(wrong)
