"""A model is compiled anew in every iteration."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.library import unmoved
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.phases import Loop, training_loops
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("recompilation",))
def check(run: Run) -> Findings:
    """`torch.compile` is called inside a training loop.

    ## What it detects
    A call of `torch.compile` in every turn of a loop that trains, there or in a function that it
    calls, on a model that is the same one in each iteration.

    ## Why it matters
    Each call wraps the model anew, so its guards and caches start empty or pile up: time goes into
    the compiler instead of training.

    ## What to do
    Compile once, before the loop.

    ## When it is wrong
    A loop over models, folds or settings that makes and trains one each time compiles rightly; a
    loop that also makes its model or its optimizer is left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for loop in training_loops(story):
            compiled = [e for e in loop.events if _compiles(e) and e.node not in seen]
            makes = any(e.result is v for v in story.made(Kind.OPTIMIZER) for e in loop.events)
            again = next((e for e in compiled if _is_the_same_again(loop, e)), None)
            if again is None or makes:
                continue
            seen.add(again.node)
            yield finding(
                "The model is compiled inside the training loop",
                "recompilation",
                again,
                cite(again, "compiled here, in every iteration"),
                cite(loop.run.site, "the loop"),
                is_symptom=True,
            )


def _compiles(event: ProgramEvent) -> bool:
    return event.name == "torch.compile" and bool(event.args)


def _is_the_same_again(loop: Loop, event: ProgramEvent) -> bool:
    """Tell whether each turn compiles, without a condition, what the turn before did."""
    again = [e for e in loop.events if e.node is event.node and e is not event]
    outer = next(t for t in event.turns if t.loop.site.node is loop.run.site.node)
    depth = event.turns.index(outer)
    is_guarded = len(event.guards) > len(loop.entered_under)
    later = [e for e in again if e.turns[:depth] == event.turns[:depth] and e.turns != event.turns]
    return not is_guarded and any(unmoved(e.args[0]) is unmoved(event.args[0]) for e in later)


_PROGRAM = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for epoch in range(3):
    {inside}
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
"""


def _program(before: str = "", inside: str = "pass") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(before=before, inside=inside)})


_COMPILE = "model = torch.compile(model)"

_MADE = "model = make_model(epoch)\n    "

FIRES = {
    "every epoch": _program(inside=_COMPILE),
    "every epoch, after a move": _program(inside=f"model = model.cuda()\n    {_COMPILE}"),
}

SILENT = {
    "once": _program(_COMPILE),
    "near miss: a new model for each fold": _program(inside=_MADE + _COMPILE),
    "near miss: made where it is compiled": _program(inside="model = torch.compile(Net())"),
    "near miss: in the first epoch": _program(inside=f"if epoch == 0:\n        {_COMPILE}"),
}
