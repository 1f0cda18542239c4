"""What the failing lines of a traceback do, where there may be no source besides them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.analysis.errors.call_messages import VALUE_CHECKS
from traindx.analysis.errors.culprits import culprit_frame, site_at
from traindx.analysis.errors.messages import KnownError, read
from traindx.analysis.errors.root_failure import last_burst, last_part
from traindx.analysis.program import project_of
from traindx.model.findings import Strength
from traindx.model.run import Failure, Frame, Run
from traindx.tracebacks import own_frames

COUNTED = re.compile(r"\w*(?:total|count|num|n_|samples|seen)")  # names of what is counted
TRAINING = re.compile(r"\btrain(?=_|\b|ing|set|load|data)", re.IGNORECASE)
HELD_OUT = re.compile(r"\b(?:val|valid|validation|test|eval|dev)(?=_|\b)", re.IGNORECASE)
_WORDS = re.compile(r"""(["']).*?\1""")  # what is printed says "before training" ...
_FIELD = re.compile(r"\{([^{}]*)\}")  # ... and what is evaluated for it stands in braces
_EVALUATES = re.compile(r"\b_?(?:eval|valid|test)")
_LOSS_CALL = re.compile(r"\b(?:nn\.)?(\w*(?:Loss|Criterion))\(\s*[^)=]+,")
CONFIGURED = "MisconfigurationException"  # Lightning's word for it
REFUSING = frozenset(
    {"ValueError", "TypeError", "AssertionError", "RuntimeError", "NotImplementedError", CONFIGURED}
)
CHECKS = ("raise ", "assert ")
# where an object is made: what it is made of is refused before any data are seen
MAKING = frozenset({"__init__", "__post_init__", "add_param_group"})


def failing_code(run: Run, failure: Failure) -> str:
    """Return the failing line of the user's own code; empty where it is not known."""
    frame = culprit_frame(run, failure)
    return frame.code if frame is not None else ""


def divisors(run: Run, failure: Failure) -> list[str]:
    """Return what the failing line divides by, as it is written."""
    tree = parsed_line(failing_code(run, failure))
    found = list(_divisors(tree)) if tree is not None else []
    return [ast.unparse(node) for node in found]


def divides_by_a_count(run: Run, failure: Failure) -> bool:
    """Tell whether the failing line divides by a length or by something that was counted."""
    found = divisors(run, failure)
    return any(d.startswith("len(") or COUNTED.match(d) for d in found)


def _divisors(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv)):
            yield node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Div, ast.FloorDiv)):
            yield node.value


def parsed_line(code: str) -> ast.Module | None:
    """Return a line of a traceback as syntax; the head of a block stands for its expression."""
    for text in (code, code.removeprefix("return "), f"{code} pass", code.rstrip(":,")):
        try:
            return ast.parse(text.strip())
        except (SyntaxError, ValueError):
            continue
    return None


def is_held_out(failure: Failure) -> bool:
    """Tell whether the innermost line that speaks of training or of held-out data means these."""
    for frame in reversed(own_frames(failure)):
        text = f"{frame.code} {frame.function}"
        text = _WORDS.sub(lambda said: " ".join(_FIELD.findall(said[0])), text)
        held_out, training = HELD_OUT.search(text), TRAINING.search(text)
        if held_out or training:
            return not training
    return False


def evaluates_with_gradients(run: Run, failure: Failure) -> bool:
    """Tell whether it failed in a function that evaluates, and never switches gradients off."""
    for frame in own_frames(failure):
        site = site_at(run, frame) if _EVALUATES.search(frame.function) else None
        function = site.function if site is not None else None
        if site is not None and function is not None:
            first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
            text = "\n".join(site.module.lines[first - 1 : function.end_lineno])
            return "no_grad" not in text and "inference_mode" not in text
    return False


def loss_called_as_function(code: str) -> str:
    """Return the class of a loss that a line calls with outputs and targets, if it does."""
    found = _LOSS_CALL.search(code)
    return found[1] if found is not None else ""


def is_of_no_batch(known: KnownError) -> bool:
    """Tell whether the error can only come of a pass over no batch: any list may be empty."""
    if known.kind == "unbound":
        return f"{known['name']} + 1" in divisors(known.run, known.failure)
    if known.kind == "division":
        return divides_by_a_count(known.run, known.failure)
    return known.kind != "joined" or is_held_out(known.failure)


def names_training(known: KnownError) -> bool:
    """Tell whether the failing line of the user is about training."""
    frame = culprit_frame(known.run, known.failure)
    return frame is not None and "train" in f"{frame.code} {frame.function}"


def why_none(known: KnownError) -> dict[str, str]:
    """Say in words why a value is None."""
    code = failing_code(known.run, known.failure)
    if ".grad." in code or code.endswith(".grad"):
        return {"origin": "the gradient is None, so no backward pass reached that parameter"}
    return {"origin": "a function returned None, or the value was never set"}


def is_library_check(run: Run, failure: Failure) -> bool:
    """Tell whether the error is a library's own check of what the user's code called it with."""
    last = failure.frames[-1:]
    if not last or last_part(failure.type) not in REFUSING or read(failure.message, VALUE_CHECKS):
        return False
    if not any(map(own_frames, last_burst(run))) or last[0] in own_frames(failure):
        return False
    return last[0].code.startswith(CHECKS)


def never_calls_backward(run: Run) -> bool:
    """Tell whether no line of the known source speaks of backward."""
    modules = project_of(run).modules
    return bool(modules) and not any("backward" in line for m in modules for line in m.lines)


def path_of(frame: Frame) -> str:
    """Return the path of a frame with forward slashes."""
    return frame.file.replace("\\", "/")


def refusal_strength(failure: Failure) -> Strength:
    """Return how surely a refused call is a misuse."""
    is_made = failure.frames[-1].function.rsplit(".", 1)[-1] in MAKING
    return Strength.STRONG if is_made else Strength.MODERATE
