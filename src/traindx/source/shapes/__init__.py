"""A shape interpreter for the source of nn.Module classes.

`trace` follows `__init__` and `forward` without executing anything and says which shape each line
makes, and the first operation whose sizes cannot agree. Silent where it cannot follow.
"""

from __future__ import annotations

from traindx.source.shapes.machine import Conflict, Step
from traindx.source.shapes.tracing import Trace, trace
from traindx.source.shapes.values import Shape

__all__ = ["Conflict", "Shape", "Step", "Trace", "trace"]
