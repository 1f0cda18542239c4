"""The interpreter: runs `__init__` and `forward` of a module on shapes instead of numbers.

Nothing of the user's code is executed. What cannot be known is UNKNOWN and stays silent; where
control flow itself cannot be followed, `GiveUp` ends the trace with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from traindx.analysis.program.project import Project
from traindx.analysis.program.shapes import calls, expressions, rearrangement, statements
from traindx.analysis.program.shapes.heap import Memory
from traindx.analysis.program.shapes.values import (
    UNKNOWN,
    CallFrame,
    GiveUp,
    Layer,
    Mismatch,
    Shape,
    ShapedTensor,
    Value,
)
from traindx.analysis.program.shapes.windows import Symbols

MAX_WORK = 60_000  # evaluated expressions; a deep ResNet takes some 20,000
MAX_DEPTH = 40  # calls inside calls


@dataclass(frozen=True, slots=True)
class ShapeStep:
    """One operation on tensors: where, what, and the shapes before and after it."""

    file: str
    line: int
    operation: str
    before: tuple[Shape, ...]
    after: tuple[Shape, ...]
    layer: Layer | None = None
    taken: tuple[ShapedTensor, ...] = ()
    made: tuple[ShapedTensor, ...] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """The first operation that cannot work, and the layer that it is about."""

    kind: str
    file: str
    line: int
    operation: str
    expected: object
    got: object
    text: str
    attribute: str | None = None
    layer: Layer | None = None

    @property
    def built_line(self) -> int | None:
        """The line on which the layer was built."""
        return None if self.layer is None else self.layer.node.lineno


class ConflictFound(Exception):
    """A conflict was found."""

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(conflict.text)
        self.conflict = conflict


class ShapeMachine:
    """The state of one interpretation."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.symbols = Symbols()
        self.memory = Memory(self.symbols)
        self.steps: list[ShapeStep] = []
        self.work = 0
        self.depth = 0
        self.unsure = 0  # conditions around us of which nobody knows the outcome
        self.resolving: set[tuple[str, str]] = set()
        self.sizes: dict[tuple[ShapedTensor, int], Value] = {}
        self.replaced = _replaced_attributes(project)

    def evaluate(self, node: ast.expr, frame: CallFrame) -> Value:
        self.work += 1
        if self.work > MAX_WORK:
            raise GiveUp("the code is too large to follow")
        return expressions.evaluate(self, node, frame)

    def run(self, body: Sequence[ast.stmt], frame: CallFrame) -> str:
        return statements.run(self, body, frame)

    def call(
        self,
        callee: Value,
        args: Sequence[Value],
        kwargs: Mapping[str, Value],
        node: ast.expr,
        frame: CallFrame,
    ) -> Value:
        if self.depth > MAX_DEPTH:
            raise GiveUp("calls are nested too deeply to follow")
        self.depth += 1
        try:
            return calls.call(self, callee, args, kwargs, node, frame)
        finally:
            self.depth -= 1

    def record(
        self,
        node: ast.expr,
        frame: CallFrame,
        operation: str,
        before: Sequence[Value],
        after: Value,
        layer: Layer | None = None,
    ) -> None:
        """Note an operation on tensors."""
        taken = tuple(v for v in before if isinstance(v, ShapedTensor))
        found = after if isinstance(after, tuple) else (after,)
        made = tuple(v for v in found if isinstance(v, ShapedTensor))
        if taken or made:
            came, went = tuple(t.shape for t in taken), tuple(t.shape for t in made)
            step = ShapeStep(
                frame.module.path, node.lineno, operation, came, went, layer, taken, made
            )
            self.steps.append(step)

    def conflict(
        self,
        mismatch: Mismatch,
        node: ast.expr,
        frame: CallFrame,
        operation: str,
        layer: Layer | None = None,
    ) -> ConflictFound | GiveUp:
        """Give a mismatch its place; on a path that may never run, it is none of our business."""
        if self.unsure:
            return GiveUp(f"line {node.lineno}: sizes differ on a path that may not run")
        path = None if layer is None else self.memory.path_to(frame.bound, layer)
        return ConflictFound(
            Conflict(
                mismatch.kind, frame.module.path, node.lineno, operation, mismatch.expected,
                mismatch.got, mismatch.text, f"self{path}" if path else None, layer,
            )
        )  # fmt: skip

    def size_at(self, tensor: ShapedTensor, index: int) -> Value:
        """Return one size of a tensor; the same symbol each time where it is not known."""
        shape = tensor.shape
        if not shape.is_open:
            place = rearrangement.position(index, len(shape.sizes))
            return UNKNOWN if place is None or not shape.sizes else shape.sizes[place]
        if -len(shape.sizes) <= index < 0:
            return shape.sizes[index]
        return self.sizes.setdefault((tensor, index), self.symbols.new())


@lru_cache(maxsize=8)
def _replaced_attributes(project: Project) -> frozenset[str]:
    """The attributes that code assigns from outside, as in `model.fc = nn.Linear(512, 10)`."""
    found = set()
    for module in project.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                owner = node.value
                if not (isinstance(owner, ast.Name) and owner.id == "self"):
                    found.add(node.attr)
    return frozenset(found)
