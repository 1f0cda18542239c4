from traindx.analysis.errors.call_messages import MISSING_ATTRIBUTE
from traindx.analysis.errors.failing_lines import why_none
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector

SUGGESTS = ("api-misuse", "version-mismatch", "name-shadowed", "detached-loss")


@detector(needs=("failure",), suggests=SUGGESTS)
def check(run: Run) -> Findings:
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
    yield from findings(run, MISSING_ATTRIBUTE, words=why_none)


FIRES = {
    "a gradient that is None": failed(
        "AttributeError: 'NoneType' object has no attribute 'norm'", "n = p.grad.norm()"
    ),
    "a list": failed("AttributeError: 'list' object has no attribute 'to'", "x.to(dev)"),
    "a tensor in place of the model": failed(
        "AttributeError: 'Tensor' object has no attribute 'parameters'",
        "clip_grad_norm_(model.parameters(), 1.0)",
    ),
    "a loss that is a number": failed(
        "AttributeError: 'float' object has no attribute 'backward'", "loss.backward()"
    ),
    "a method that a class no longer has": failed(
        "AttributeError: type object 'Trainer' has no attribute 'add_argparse_args'"
    ),
    "an alias that numpy dropped": failed(
        "AttributeError: module 'numpy' has no attribute 'float'"
    ),
}

SILENT = {
    "near miss: a module that is not initialised": failed(
        "AttributeError: 'Net' object has no attribute '_modules'"
    ),
    "another error": failed("KeyError: 'label'"),
}
