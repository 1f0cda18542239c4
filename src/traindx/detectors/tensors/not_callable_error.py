from traindx.analysis.errors.call_messages import NOT_CALLABLE
from traindx.analysis.errors.messages import finding, known_error
from traindx.analysis.errors.name_blame import calls_names_only, hidden_name, taken_name
from traindx.examples import failed
from traindx.registry import Findings, Run, Strength, detector

OF_NAME = {"name-shadowed": Strength.STRONG, "api-misuse": Strength.WEAK}
OF_ANY = {"name-shadowed": Strength.MODERATE, "api-misuse": Strength.MODERATE}


@detector(needs=("failure",), suggests=("name-shadowed", "api-misuse"))
def check(run: Run) -> Findings:
    """A value is called as if it were the function whose name it took.

    ## What it detects
    "'Tensor' object is not callable" and the same of numbers, lists, strings and modules. With the
    source or the failing line: the assignment that overwrote the name, such as
    `loss = loss(output, target)`. Where the function is defined outside, the same line fails at
    once: "local variable 'loss' referenced before assignment".

    ## Why it matters
    It works once and fails the second time, so the first batch passes.

    ## What to do
    Give the function a name of its own, such as `criterion`.

    ## When it is wrong
    A missing operator (`2(x)`) or an attribute that is no method reads the same. A local variable
    that only a loop without iterations would have set is distinguished by its line.
    """
    known = known_error(run, NOT_CALLABLE)
    if known is None:
        return
    if known.kind == "unbound":
        is_hidden, culprit = hidden_name(run, known.failure, known["name"])
        if is_hidden:
            yield finding(known, culprit=culprit)
        return
    name, culprit = taken_name(run, known.failure)
    if name:
        claim = (
            f"The name {name} no longer means the function: a {known['kind']} was assigned to it"
        )
        yield finding(known, claim, cause="name-shadowed", culprit=culprit)
    else:
        yield finding(known, suggests=OF_NAME if calls_names_only(known.failure) else OF_ANY)


_LOOP = """
from torch import nn
loss = nn.CrossEntropyLoss()
for x, y in loader:
    loss = loss(model(x), y)
    loss.backward()
"""

_IMPORTED = """
from losses import nt_xent
def main():
    for a, b in loader:
        nt_xent = nt_xent(a, b)
        nt_xent.backward()
"""
_EMPTY = """
def train(model, loader):
    for x, y in loader:
        loss = criterion(model(x), y)
    return loss.item()
"""

FIRES = {
    "a loss": failed(
        "TypeError: 'Tensor' object is not callable",
        "loss = loss(model(x), y)",
        sources={"train.py": _LOOP},
    ),
    "without the source": failed("TypeError: 'float' object is not callable", "acc = acc(out, y)"),
    "another line gave the name away": failed(
        "TypeError: 'Tensor' object is not callable", "loss = criterion(F.relu(out), target)"
    ),
    "a function of another file": failed(
        "UnboundLocalError: cannot access local variable 'nt_xent' where it is not associated with "
        "a value",
        "nt_xent = nt_xent(a, b)",
        sources={"train.py": _IMPORTED},
    ),
    "a global that is counted up": failed(
        "UnboundLocalError: local variable 'step' referenced before assignment",
        "step = step + 1",
        sources={"train.py": "step = 0\ndef tick():\n    step = step + 1\n"},
    ),
    "nothing known": failed("TypeError: 'Tensor' object is not callable"),
}

SILENT = {
    "near miss: a loop that never ran": failed(
        "UnboundLocalError: local variable 'loss' referenced before assignment",
        "return loss.item()",
        sources={"train.py": _EMPTY},
    ),
    "near miss: not subscriptable": failed(
        "TypeError: 'float' object is not subscriptable", "x = loss[0]"
    ),
    "another error": failed("KeyError: 'label'"),
}
