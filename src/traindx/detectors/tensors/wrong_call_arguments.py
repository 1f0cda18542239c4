"""A call did not fit what was called."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import Culprit, explain, make_failed_run, match_root

COUNT = re.compile(
    r"([\w.]+)\(\) takes (?:from (\d+) to )?(\d+) positional arguments? but (\d+) (?:was|were) g"
)
MISSING = re.compile(
    r"([\w.]+)\(\) missing (\d+) required (?:positional|keyword-only) arguments?: (.+)"
)
KEYWORD = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'")
TWICE = re.compile(r"([\w.]+)\(\) got multiple values for argument '(\w+)'")
KIND = re.compile(
    r"([\w.]+)\(\): argument '(\w+)' \(position (\d+)\) must be ([\w ]+?),? not (\w+)"
)


@detector(needs=("failure",), suggests=("api-misuse", "version-mismatch"))
def check(run: Run) -> Iterator[Finding]:
    """A function or model is called with arguments that it does not take.

    ## What it detects
    "forward() takes 2 positional arguments but 3 were given", "missing 1 required positional
    argument", an unknown or repeated keyword, and an argument of the wrong kind such as a tuple
    where a tensor is wanted.

    ## Why it matters
    `self` counts, so the numbers in the message are one higher than those in the call.

    ## What to do
    Bring the call and the signature together; with the source the definition is shown.

    ## When it is wrong
    If the library changed its signature, the versions are at fault rather than the call.
    """
    hit = match_root(run, COUNT, MISSING, KEYWORD, TWICE, KIND, types=("TypeError",))
    if hit is None:
        return
    failure, found = hit
    culprit = _definition(run, found[1])
    if found.re is KEYWORD and culprit is None:
        guesses = {"api-misuse": Strength.STRONG, "version-mismatch": Strength.WEAK}
        yield explain(run, failure, _claim(found), suggests=guesses)
        return
    notes = [culprit.evidence] if culprit is not None else []
    yield explain(run, failure, _claim(found), shows="api-misuse", notes=notes)


def _claim(found: re.Match[str]) -> str:
    name = found[1]
    is_bound = "." in name or name in ("forward", "__init__")
    if found.re is COUNT:
        less = 1 if is_bound else 0
        least = f"{int(found[2]) - less} to " if found[2] else ""
        takes = f"{least}{int(found[3]) - less}{' besides self' if less else ''}"
        return f"The call gives {int(found[4]) - less} arguments to {name}, which takes {takes}"
    if found.re is MISSING:
        return f"The call of {name} leaves out {found[3].rstrip('.')}"
    if found.re is KEYWORD:
        return f"The call gives {name} an argument {found[2]}, which it does not know"
    if found.re is TWICE:
        return f"The call gives {name} the argument {found[2]} twice"
    return f"Argument {found[3]} of {name} ({found[2]}) has to be {found[4]} and is {found[5]}"


def _definition(run: Run, name: str) -> Culprit | None:
    """Where the called function is defined, if there is only one of its name."""
    short = name.replace(".<locals>", "").split(".")
    found = [
        (m, f)
        for m in project_of(run).modules
        for dotted, f in m.functions.items()
        if dotted.split(".")[-len(short) :] == short
    ]
    if len(found) != 1:
        return None
    module, function = found[0]
    taken = ", ".join(a.arg for a in function.args.args if a.arg != "self")
    return Culprit(module, function, f"{name} is defined here: it takes ({taken})")


_MODEL = "class Net(nn.Module):\n    def forward(self, x):\n        return x\n"

FIRES = {
    "one too many": make_failed_run(
        "TypeError: Net.forward() takes 2 positional arguments but 3 were given",
        "out = model(x, mask)",
        sources={"m.py": _MODEL + "out = model(x, mask)\n"},
    ),
    "one missing": make_failed_run(
        "TypeError: forward() missing 1 required positional argument: 'target'"
    ),
    "an option that does not exist": make_failed_run(
        "TypeError: __init__() got an unexpected keyword argument 'learning_rate'"
    ),
    "the wrong kind": make_failed_run(
        "TypeError: linear(): argument 'input' (position 1) must be Tensor, not tuple"
    ),
}

SILENT = {
    "near miss: not callable at all": make_failed_run("TypeError: 'Tensor' object is not callable"),
    "another error": make_failed_run("ValueError: expected 4D input (got 3D input)"),
}
