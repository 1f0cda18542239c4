"""The shape interpreter against real torch execution, and against broken copies of the zoo."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from traindx.model import make_run
from traindx.source import Project, project_of
from traindx.source.shapes import Trace, trace
from traindx.source.shapes.sizes import (
    Dim,
    Size,
    divided,
    floor,
    is_surely_different,
    product,
    symbol,
)

from .zoo import HEAD, ZOO

# what a changed number breaks besides shapes: Python's own lists, ids beyond a table
OTHER_ERRORS = re.compile("out of range in self|^(list|tuple) index|Class values must|output padding must be")


def project(text: str) -> Project:
    return project_of(make_run(sources={"model.py": text}))


def traced(text: str, *inputs: tuple[int | None, ...] | None) -> Trace:
    found = project(text)
    module = found.modules[0]
    return trace(found, module, module.classes["Net"], inputs)


def executed(text: str, inputs: tuple[tuple[int, ...], ...]) -> tuple[list[Any], list[Any]]:
    """Return the shapes of the outputs and of what every leaf layer made, from real torch."""
    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(text, "model.py", "exec", dont_inherit=True), space)
    torch.manual_seed(0)
    model = space["Net"]()
    made: list[Any] = []

    def note(module: Any, args: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        made.append((type(module).__name__, tuple(first.shape)))

    for module in model.modules():
        if not list(module.children()) or isinstance(module, torch.nn.MultiheadAttention):
            module.register_forward_hook(note)
    values = [
        torch.zeros(s, dtype=torch.long) if "Embedding" in text else torch.randn(s) for s in inputs
    ]
    output = model(*values)
    outputs = output if isinstance(output, tuple) else (output,)
    return [tuple(o.shape) for o in outputs if o is not None], made


@pytest.mark.parametrize("name", ZOO)
def test_same_shapes_as_torch(name: str) -> None:
    body, inputs = ZOO[name]
    text = HEAD + body
    wanted, made = executed(text, inputs)
    found = traced(text, *inputs)
    assert found.conflict is None and found.gave_up is None
    assert [s.sizes for s in found.output] == wanted
    steps = [s for s in found.steps if s.layer is not None and s.layer.node.lineno != s.line]
    ours = [(s.layer.kind, s.after[0].sizes) for s in steps if s.layer]
    if "TransformerEncoder" not in text:
        assert ours == [(("Linear", s) if k == "LazyLinear" else (k, s)) for k, s in made] or (
            "LazyLinear" in text and [s for _, s in ours] == [s for _, s in made]
        )


def mutants(text: str) -> list[tuple[int, str]]:
    """Return copies of a program with one number changed, and the line of that number."""
    found = []
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0:
            line = lines[node.lineno - 1]
            for other in (node.value + 1, node.value * 2):
                changed = line[: node.col_offset] + str(other) + line[node.end_col_offset :]
                whole = [*lines[: node.lineno - 1], changed, *lines[node.lineno :]]
                found.append((node.lineno, "\n".join(whole)))
    return found


def failing_line(error: BaseException) -> int | None:
    """Return the innermost line of the program under test in a traceback."""
    line, trace_back = None, error.__traceback__
    while trace_back is not None:
        if trace_back.tb_frame.f_code.co_filename == "model.py":
            line = trace_back.tb_lineno
        trace_back = trace_back.tb_next
    return line


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ZOO)
def test_a_changed_number_conflicts_exactly_where_torch_fails(name: str) -> None:
    body, inputs = ZOO[name]
    for line, text in mutants(HEAD + body):
        found = traced(text, *inputs)
        try:
            wanted, _ = executed(text, inputs)
        except (RuntimeError, ValueError, AssertionError, IndexError) as error:
            if found.gave_up or OTHER_ERRORS.search(str(error)):
                continue
            where = f"line {line}: torch says {error}"
            assert found.conflict is not None, where
            assert found.conflict.line == failing_line(error), where
        else:
            assert found.conflict is None, f"line {line}: {found.conflict}"
            assert [s.sizes for s in found.output] == wanted
