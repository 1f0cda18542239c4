"""Causes in how the weights are updated."""

from __future__ import annotations

from traindx.causes.optimisation import loop, signal, step_size

CAUSES = (*step_size.CAUSES, *loop.CAUSES, *signal.CAUSES)
