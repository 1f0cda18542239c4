"""Gives the optimizer the parameters of the loss that no optimizer holds."""

from __future__ import annotations

from typing import Any

from .ownership import hold_all
from .reporting import Report


def apply(values: dict[str, Any], report: Report) -> None:
    """Add what is missing before it is first needed."""
    hold_all(report)
