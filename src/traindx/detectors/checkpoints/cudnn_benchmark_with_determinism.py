from traindx.analysis.program.training.claims import each_place, finding, replace_value
from traindx.analysis.program.training.seeds import timed_algorithms
from traindx.examples import script
from traindx.registry import Findings, Run, Strength, detector


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
    for on in each_place(run, timed_algorithms, lambda event: event.node):
        yield finding(
            "cudnn.benchmark is on although deterministic algorithms are asked for",
            (on, "cudnn.benchmark = True"),
            strength=Strength.WEAK,
            hint=Strength.WEAK,
            patch=replace_value(on, "False"),
            is_symptom=False,
        )


def _program(*lines: str) -> Run:
    return script("\n".join(["import torch", *lines, ""]))


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
