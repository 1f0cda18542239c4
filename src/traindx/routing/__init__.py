"""A question in words: which specialists, in which order, and why; or one question back."""

from __future__ import annotations

from traindx.routing.answering import route
from traindx.routing.routes import Heard, Route
from traindx.routing.sections import split_sections

__all__ = ["Heard", "Route", "route", "split_sections"]
