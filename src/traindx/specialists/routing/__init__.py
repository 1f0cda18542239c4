"""A question in words: which specialists, in which order, and why; or one question back."""

from __future__ import annotations

from traindx.specialists.routing.answers import route
from traindx.specialists.routing.routes import Heard, Route
from traindx.specialists.routing.sections import split_sections

__all__ = ["Heard", "Route", "route", "split_sections"]
