"""A deterministic run lets cuDNN choose its algorithms by timing."""

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import External, constant
from traindx.analysis.program.training.claims import cite, replace_value
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

CUDNN = "torch.backends.cudnn"


@detector(needs=("source",), suggests=("nondeterministic-operation",))
def check(run: Run) -> Findings:
    """`cudnn.benchmark` is on where determinism is asked for.

    ## What it detects
    A program that sets `cudnn.benchmark = True` for good and asks for determinism as well, by
    `cudnn.deterministic = True` or `use_deterministic_algorithms(True)`, wherever each is done.

    ## Why it matters
    The benchmark picks the fastest algorithm by measuring, so two runs may compute with different
    ones and differ in the last bits, then in everything.

    ## What to do
    `torch.backends.cudnn.benchmark = False` where results have to repeat.

    ## When it is wrong
    On one machine with fixed shapes the choice is often the same; hence a weak remark.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        plain = [e for e in story.events if not e.guards]
        states = [e for e in plain if _sets(e, "benchmark")]
        if not states or constant(states[-1].args[0]) is not True or states[-1].node in seen:
            continue
        if any(_asks(e) for e in plain):
            on = states[-1]
            seen.add(on.node)
            yield Finding(
                claim="The cuDNN benchmark is on where determinism is asked for",
                strength=Strength.WEAK,
                evidence=(cite(on, "cudnn.benchmark = True"),),
                suggests={"nondeterministic-operation": Strength.WEAK},
                location=on.location,
                patch=replace_value(on, "False"),
            )


def _sets(event: ProgramEvent, attribute: str) -> bool:
    owner = event.receiver
    is_cudnn = isinstance(owner, External) and owner.name == CUDNN
    return event.act is EventForm.STORE and is_cudnn and event.name == attribute


def _asks(event: ProgramEvent) -> bool:
    is_call = event.name == "torch.use_deterministic_algorithms" and bool(event.args)
    return (is_call or _sets(event, "deterministic")) and constant(event.args[0]) is True


def _program(*lines: str) -> Run:
    return make_run(sources={"train.py": "\n".join(["import torch", *lines, ""])})


_ON = "torch.backends.cudnn.benchmark = True"
_ASKED = "torch.backends.cudnn.deterministic = True"

FIRES = {
    "both": _program(_ASKED, _ON),
    "in a function, by the call": _program(
        "from torch.backends import cudnn",
        "def repeatable(seed):",
        "    torch.manual_seed(seed)",
        "    torch.use_deterministic_algorithms(True)",
        "repeatable(0)",
        "cudnn.benchmark = True",
    ),
}

SILENT = {
    "near miss: switched off again": _program(
        _ON, _ASKED, "torch.backends.cudnn.benchmark = False"
    ),
    "speed only": _program(_ON),
    "near miss: the benchmark is off": _program(_ASKED, "torch.backends.cudnn.benchmark = False"),
    "near miss: one or the other": _program(
        "if deterministic:", f"    {_ASKED}", "else:", f"    {_ON}"
    ),
}
