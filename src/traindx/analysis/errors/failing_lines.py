"""What the failing lines of a traceback do, where there may be no source besides them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.analysis.errors.culprits import culprit_frame, site_at
from traindx.model.run import Failure, Run
from traindx.tracebacks import own_frames

COUNTED = re.compile(r"\w*(?:total|count|num|n_|samples|seen)")  # names of what is counted
TRAINING = re.compile(r"\btrain(?=_|\b|ing|set|load|data)", re.IGNORECASE)
HELD_OUT = re.compile(r"\b(?:val|valid|validation|test|eval|dev)(?=_|\b)", re.IGNORECASE)
_WORDS = re.compile(r"""(["']).*?\1""")  # what is printed says "before training" ...
_FIELD = re.compile(r"\{([^{}]*)\}")  # ... and what is evaluated for it stands in braces
_EVALUATES = re.compile(r"\b_?(?:eval|valid|test)")
_LOSS_CALL = re.compile(r"\b(?:nn\.)?(\w*(?:Loss|Criterion))\(\s*[^)=]+,")


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
