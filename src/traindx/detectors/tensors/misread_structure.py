"""A batch or record did not have the form that the code read it by."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.failures import own_frames
from traindx.model import Failure, Frame, Run, make_run
from traindx.registry import detector
from traindx.source.errors import explain, last_burst, make_failed_run, root_failure

KEY = re.compile(r"^\s*(['\"].+['\"]|\d+)\s*$")
UNPACK = re.compile(
    r"(not enough|too many) values to unpack \(expected (?:at least )?(\d+)(?:, got (\d+))?"
)
INDEXED = re.compile(
    r"(list|tuple|string) indices must be integers(?: or slices)?,? not '?(\w+)'?"
    r"|(string) indices must be integers"
)
SUBSCRIPT = re.compile(r"'([\w.]+)' object is not (subscriptable|iterable)")
OPERAND = re.compile(r"unsupported operand type\(s\) for ([^:]+): '([\w.]+)' and '([\w.]+)'")
RANGE = re.compile(r"^(list|tuple|string) (?:assignment )?index out of range")
ENVIRONMENT = re.compile(r"^['\"](?:[A-Z][A-Z0-9]*_)*(?:RANK|SIZE|ADDR|PORT|DEVICES|HOME)['\"]$")


@detector(needs=("failure",), suggests=("api-misuse", "rendezvous-failure"))
def check(run: Run) -> Iterator[Finding]:
    """Data are read by keys, positions or types that they do not have.

    ## What it detects
    KeyError, "not enough values to unpack", "list indices must be integers", "string indices must
    be integers", "'int' object is not subscriptable", "unsupported operand type(s)" and "list
    index out of range".

    ## Why it matters
    What the loader returns and what the loop expects have drifted apart; the line that raises is
    the reader, the fault may be with the writer.

    ## What to do
    Print one batch: `type(batch)`, its keys and shapes, and bring the two sides together.

    ## When it is wrong
    If only one record lacks the field, the data are at fault and not the code.
    """
    failure = root_failure(run)
    found = _words(failure) if failure is not None else None
    if failure is None or found is None or not any(map(own_frames, last_burst(run))):
        return
    if _is_own_word(failure):
        return
    if ENVIRONMENT.match(failure.message):
        claim = (
            f"The environment has no {failure.message}: the script was not started by a launcher"
        )
        yield explain(run, failure, claim, shows="rendezvous-failure")
        return
    yield explain(run, failure, found, suggests={"api-misuse": Strength.STRONG})


def _is_own_word(failure: Failure) -> bool:
    """Tell whether the program raised it in so many words: it checks its data, and says so."""
    last = failure.frames[-1:]
    if not last or not last[0].code.startswith("raise "):
        return False
    is_sentence = len(failure.message.split()) > 3  # a library's own word, and not the key
    return is_sentence or last[0] in own_frames(failure)


def _words(failure: Failure) -> str | None:
    message, kind = failure.message, failure.type.rsplit(".", 1)[-1]
    if kind == "KeyError" and (found := KEY.match(message)):
        return f"A key is read that is not there: {found[1]}"
    if kind == "ValueError" and (found := UNPACK.search(message)):
        got = (
            f", {found[3]} came"
            if found[3]
            else f", {'fewer' if 'not' in found[1] else 'more'} came"
        )
        return f"{found[2]} values are unpacked{got}"
    if kind == "IndexError" and (found := RANGE.match(message)):
        return f"A {found[1]} is read past its end"
    if kind != "TypeError":
        return None
    if found := INDEXED.search(message):
        given = f" by a {found[2]}" if found[2] else " by a name"
        return f"A {found[1] or found[3]} is indexed{given}: it is no dict"
    if found := SUBSCRIPT.search(message):
        verb = "indexed" if found[2] == "subscriptable" else "looped over"
        return f"A {found[1]} is {verb}"
    if found := OPERAND.search(message):
        return f"Operator {found[1].strip()} gets a {found[2]} and a {found[3]}"
    return None


_CHECKED = make_run(
    failures=[
        Failure(
            "KeyError",
            "\"param 'initial_lr' is not specified in param_groups[0]\"",
            "train.log",
            "line 90",
            (
                Frame("train.py", 31, "<module>", "s = StepLR(opt, 9, last_epoch=3)"),
                Frame("/lib/site-packages/torch/optim/x.py", 42, "f", 'raise KeyError("param'),
            ),
        )
    ]
)

FIRES = {
    "a batch without labels": make_failed_run("KeyError: 'labels'", "y = batch['labels']"),
    "three parts": make_failed_run(
        "ValueError: too many values to unpack (expected 2)", "for x, y in loader:"
    ),
    "a list in place of a dict": make_failed_run(
        "TypeError: list indices must be integers or slices, not str", "y = batch['labels']"
    ),
    "no launcher": make_failed_run("KeyError: 'LOCAL_RANK'", "os.environ['LOCAL_RANK']"),
}

SILENT = {
    "near miss: the program's own check": make_failed_run(
        "KeyError: 'record 12 has no label'", "raise KeyError(f'record {i} has no label')"
    ),
    "near miss: raised inside of a library alone": make_failed_run("KeyError: 'labels'"),
    "near miss: a check of the optimizer's": _CHECKED,
    "another error": make_failed_run("RuntimeError: CUDA out of memory.", "loss.backward()"),
}
