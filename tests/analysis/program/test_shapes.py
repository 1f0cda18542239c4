"""The shape interpreter against real torch execution, and against broken copies of the zoo."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from traindx.analysis.program import Project, project_of
from traindx.analysis.program.shapes import ForwardTrace, trace
from traindx.analysis.program.shapes.sizes import (
    Dim,
    Size,
    divided,
    floor,
    is_surely_different,
    product,
    symbol,
)
from traindx.analysis.program.shapes.uses import contradictions
from traindx.examples import make_run, script

from .zoo import HEAD, ZOO

# what a changed number breaks besides shapes: Python's own lists, ids beyond a table
OTHER_ERRORS = re.compile(
    "out of range in self|^(list|tuple) index|Class values must|output padding must be"
)


def project(text: str) -> Project:
    return project_of(make_run(sources={"model.py": text}))


def traced(text: str, *inputs: tuple[int | None, ...] | None) -> ForwardTrace:
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
            for other in (node.value + 1,) if node.lineno % 2 else (node.value * 2,):
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


MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, hidden{default}):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)
        self.body = nn.Sequential(
            nn.Linear({flat}, hidden),
            nn.ReLU(),
            nn.Linear({second}, 10),
        )

    def forward(self, x):
        x = self.conv(x)
        x = x.view(x.size(0), -1)
        return self.body(x)
"""


def test_an_unknown_input_is_taken_from_the_first_layer() -> None:
    found = traced(MODEL.format(default="", flat="400", second="hidden"))
    assert found.conflict is None
    assert str(found.assumed["x"]) == "(B, 3, H, W)"
    assert str(found.output[0]) == "(B, 10)"


def test_unknown_parameters_still_contradict_each_other() -> None:
    found = traced(MODEL.format(default="", flat="400", second="hidden + 1"))
    conflict = found.conflict
    assert conflict is not None and conflict.attribute == "self.body[2]"
    assert (str(conflict.expected), str(conflict.got)) == ("hidden + 1", "hidden")
    assert (conflict.line, conflict.built_line) == (18, 12)
    assert traced(MODEL.format(default="", flat="400", second="other")).conflict is None


def test_lines_show_shapes_before_and_after() -> None:
    found = traced(MODEL.format(default="=8", flat="14400", second="8"), (2, 3, 32, 32))
    before, after = found.lines()["model.py", 17]
    assert (str(before[0]), str(after[0])) == ("(2, 16, 30, 30)", "(2, 14400)")


QUIET = {
    "a branch that may not run": "        if flag:\n            x = self.b(x)\n        return self.a(x)",
    "a loop of unknown length": "        while more(x):\n            x = self.a(x)\n        return self.b(x)",
    "an unknown function": "        return self.b(helper(self.a(x)))",
    "caught": "        try:\n            x = self.b(self.a(x))\n        except RuntimeError:\n            pass\n        return x",
    "a mask": "        y = self.a(x)\n        return self.c(y[y > 0])",
    "a layer that is replaced from outside": "        return self.d(self.a(x))",
    "match": "        match x:\n            case _:\n                return self.b(self.a(x))",
    "recursion": "        return self.forward(self.a(x))",
}


@pytest.mark.parametrize("name", QUIET)
def test_what_cannot_be_followed_is_no_conflict(name: str) -> None:
    text = f"""
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(9, 9), nn.Linear(3, 3)
        self.d = nn.Linear(5, 5)

    def forward(self, x, flag=some_flag()):
{QUIET[name]}

model = Net()
model.d = nn.Linear(8, 2)
"""
    found = traced(text, (4, 8))
    assert found.conflict is None


def test_files_of_a_project_are_followed_together() -> None:
    parts = (
        "import torch.nn as nn\nWIDTH = 12\nclass Block(nn.Module):\n    def __init__(self, n):\n"
    )
    parts += "        super().__init__()\n        self.fc = nn.Linear(n, WIDTH)\n"
    parts += "    def forward(self, x):\n        return self.fc(x)\n"
    model = "from torch import nn\nfrom parts import Block, WIDTH\nclass Net(nn.Module):\n"
    model += "    def __init__(self):\n        super().__init__()\n        self.b = Block(4)\n"
    model += "        self.out = nn.Linear(WIDTH + 1, 2)\n"
    model += "    def forward(self, x):\n        return self.out(self.b(x))\n"
    found = project_of(make_run(sources={"parts.py": parts, "model.py": model}))
    home = next(m for m in found.modules if m.path == "model.py")
    conflict = trace(found, home, home.classes["Net"]).conflict
    assert conflict is not None and (conflict.expected, conflict.got) == (13, 12)


# --- sizes ----------------------------------------------------------------------------------------

VALUES = {"a": 3, "b": 5, "c": 11}
atoms = st.sampled_from([symbol(n) for n in VALUES]) | st.integers(-6, 6)
sizes = st.recursive(
    atoms,
    lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner).map(
        lambda t: t[1] + t[2] if t[0] == "+" else t[1] - t[2] if t[0] == "-" else t[1] * t[2]
    ),
    max_leaves=6,
)


def value(size: Dim) -> int:
    if isinstance(size, int):
        return size
    total = 0
    for names, coefficient in size.terms:
        part = coefficient
        for name in names:
            part *= VALUES[name]
        total += part
    return total


@given(sizes, sizes)
def test_sizes_calculate_as_numbers_do(a: Dim, b: Dim) -> None:
    assert value(a + b) == value(a) + value(b)
    assert value(a - b) == value(a) - value(b)
    assert value(a * b) == value(a) * value(b)
    quotient = divided(a, b) if b != 0 else None
    assert quotient is None or quotient * b == a
    if is_surely_different(a, b):
        assert value(a) != value(b)
    assert isinstance(a - a, int)


@given(sizes, st.integers(1, 9))
def test_a_floor_of_a_multiple_is_exact(a: Dim, n: int) -> None:
    assert floor(a * n, n) == a
    assert product((a, n)) == a * n


def test_sizes_read_well() -> None:
    h = symbol("H")
    assert str(2 * h - 1) == "2·H - 1"
    assert str(1 - h) == "-H + 1"
    assert isinstance(h // 2, Size) and str(h // 2) == "⌊(H)/2⌋"
    assert str((h - 1) // 2) == "⌊(H + 1)/2⌋ - 1"


@pytest.mark.parametrize(("width", "count"), [(64, 0), (128, 1)])
def test_a_contradiction_comes_once(width: int, count: int) -> None:
    text = """
from torch import nn
model = nn.Sequential(nn.Linear(784, {width}), nn.Linear(64, 10))
"""
    found = list(contradictions(project_of(script(text, width=width))))
    assert [conflict.got for _, conflict, _ in found] == [width] * count
