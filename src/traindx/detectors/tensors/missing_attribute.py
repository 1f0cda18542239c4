"""An object was asked for what it does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source.errors import culprit_frame, explain, make_failed_run, match_root

NONE = re.compile(r"'NoneType' object (?:has no attribute '(\w+)'|is not (\w+))")
OTHER = re.compile(r"'([\w.]+)' object has no attribute '(\w+)'")
LIBRARY = re.compile(
    r"module '(torch|torchvision|torchaudio|numpy|transformers|lightning|pytorch_lightning|PIL)"
    r"((?:\.\w+)*)' has no attribute '(\w+)'"
)
OF_CLASS = re.compile(r"type object '([\w.]+)' has no attribute '(\w+)'")
# what modules have and tensors do not: a tensor has taken the name of a model
TAKEN = re.compile(
    r"'Tensor' object has no attribute '(parameters|named_parameters|state_dict|load_state_dict"
    r"|modules|named_modules|children|train|eval|zero_grad|register_forward_hook)'"
)
# a number has no graph left: `.item()` or float() was taken of the loss before backward
NUMBER = re.compile(
    r"'(float|numpy\.float\d+|numpy\.ndarray)' object has no attribute '(backward|requires_grad_)'"
)
HOOKS = re.compile(r"'_(?:backward_hooks|modules|parameters|buffers|forward_hooks)")
GUESSED = ("api-misuse", "version-mismatch", "name-shadowed", "detached-loss")
RETURNS_NOTHING = ("train_step", "backward", "append", "sort", "shuffle", "extend", "update")


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
    hit = match_root(run, LIBRARY, NONE, TAKEN, NUMBER, OTHER, OF_CLASS)
    if hit is None or HOOKS.search(hit[0].message):
        return
    failure, found = hit
    if found.re is LIBRARY:
        claim = f"The installed {found[1]} has no {found[1]}{found[2]}.{found[3]}"
        guesses = {"version-mismatch": Strength.STRONG, "api-misuse": Strength.WEAK}
        yield explain(run, failure, claim, suggests=guesses)
        return
    if found.re is TAKEN:
        claim = f"A tensor is asked for {found[1]}, which a model has: it took the model's name"
        guesses = {"name-shadowed": Strength.STRONG, "api-misuse": Strength.WEAK}
        yield explain(run, failure, claim, suggests=guesses)
        return
    if found.re is NUMBER:
        claim = f"Backward is called on a {found[1]}: the loss lost its graph when it was made one"
        guesses = {"detached-loss": Strength.STRONG, "api-misuse": Strength.WEAK}
        yield explain(run, failure, claim, suggests=guesses)
        return
    if found.re is OF_CLASS:
        claim = f"The class {found[1]} has no {found[2]}: another version of it has, or none"
        guesses = dict.fromkeys(("version-mismatch", "api-misuse"), Strength.MODERATE)
        yield explain(run, failure, claim, suggests=guesses)
        return
    if found.re is NONE:
        what = f"read {found[1]} from" if found[1] else f"treat as {found[2]}"
        claim = f"The code tries to {what} a None{_origin(run, failure, found[1] or '')}"
    else:
        claim = f"A {found[1]} has no attribute {found[2]}"
    yield explain(run, failure, claim, suggests={"api-misuse": Strength.STRONG})


def _origin(run: Run, failure: Failure, attribute: str) -> str:
    frame = culprit_frame(run, failure)
    code = frame.code if frame is not None else ""
    if ".grad." in code or code.endswith(".grad"):
        return ": the gradient is None, so no backward pass reached that parameter"
    return ": something returned nothing, or was never set"


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
