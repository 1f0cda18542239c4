"""An object was asked for what it does not have."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.errors.call_messages import MISSING_ATTRIBUTE
from traindx.analysis.errors.failing_lines import failing_code
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import make_failed_run
from traindx.model.findings import Finding
from traindx.model.run import Run
from traindx.registry import detector

GUESSED = ("api-misuse", "version-mismatch", "name-shadowed", "detached-loss")

NO_GRADIENT = "the gradient is None, so no backward pass reached that parameter"

NOTHING = "something returned nothing, or was never set"


@detector(needs=("failure",), suggests=GUESSED)
def check(run: Run) -> Iterator[Finding]:
    """An attribute is read that the object does not have.

    ## What it detects
    "'NoneType' object has no attribute …", "'list' object has no attribute …", and "module 'numpy'
    has no attribute …", which means another version of the library. A tensor that is asked for
    `parameters` or `eval` has taken the name of a model, as in `model = model(x)`; a number that
    is asked for `backward` was a loss before its graph was cut off.

    ## Why it matters
    The fault lies where the object was made: a function without `return`, a `.grad` that no
    backward filled, a loader that returns lists.

    ## What to do
    Print `type(obj)` in front of the line and go back to where it was assigned.

    ## When it is wrong
    If the attribute exists in the documentation, the installed version is another one.
    """
    known = known_error(run, MISSING_ATTRIBUTE)
    if known is None or known.kind == "super().__init__":
        return
    code = failing_code(run, known.failure)
    is_gradient = ".grad." in code or code.endswith(".grad")
    yield finding(known, known.claim(origin=NO_GRADIENT if is_gradient else NOTHING))


FIRES = {
    "a gradient that is None": make_failed_run(
        "AttributeError: 'NoneType' object has no attribute 'norm'", "n = p.grad.norm()"
    ),
    "a list": make_failed_run("AttributeError: 'list' object has no attribute 'to'", "x.to(dev)"),
    "a tensor in place of the model": make_failed_run(
        "AttributeError: 'Tensor' object has no attribute 'parameters'",
        "clip_grad_norm_(model.parameters(), 1.0)",
    ),
    "a loss that is a number": make_failed_run(
        "AttributeError: 'float' object has no attribute 'backward'", "loss.backward()"
    ),
    "a method that a class no longer has": make_failed_run(
        "AttributeError: type object 'Trainer' has no attribute 'add_argparse_args'"
    ),
    "an alias that numpy dropped": make_failed_run(
        "AttributeError: module 'numpy' has no attribute 'float'"
    ),
}

SILENT = {
    "near miss: a module that is not initialised": make_failed_run(
        "AttributeError: 'Net' object has no attribute '_modules'"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
