"""A shape interpreter for the source of nn.Module classes.

`trace` follows `__init__` and `forward` without executing anything and says which shape each line
makes, and the first operation whose sizes cannot agree. Silent where it cannot follow.
"""

from __future__ import annotations

from traindx.analysis.program.shapes.forward_traces import ForwardTrace, trace
from traindx.analysis.program.shapes.machine import Conflict, ShapeStep
from traindx.analysis.program.shapes.values import Shape

__all__ = ["Conflict", "ForwardTrace", "Shape", "ShapeStep", "trace"]
