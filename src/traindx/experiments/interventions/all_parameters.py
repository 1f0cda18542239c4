"""Gives the optimizer the parameters of the loss that no optimizer holds."""

from __future__ import annotations

from typing import Any

from .change_report import ChangeReport
from .parameter_owners import hold_all


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Add what is missing before it is first needed."""
    hold_all(report)
