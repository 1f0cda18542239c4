"""Drops another share of the activations."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn import functional

from . import forwards
from .change_report import ChangeReport
from .replacement import change_arguments

FUNCTIONS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
             "feature_alpha_dropout")  # fmt: skip


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Set the share wherever something is dropped at all."""
    share = float(values.get("value", 0.0))

    def set_parts(model: nn.Module, args: Any) -> None:
        for part in model.modules():
            name = "p" if isinstance(part, nn.modules.dropout._DropoutNd) else "dropout"
            current = part.__dict__.get(name)  # of an RNN or an attention
            if type(current) is float and current > 0 and current != share:
                setattr(part, name, share)
                report.count()

    def set_argument(arguments: dict[str, Any]) -> None:
        current = arguments.get("p", 0.5)
        is_training = arguments.get("training", True)
        if is_training and type(current) is float and current > 0 and current != share:
            arguments["p"] = share
            report.count()

    forwards.on_begin(report, set_parts)
    for name in FUNCTIONS:
        change_arguments(functional, name, report, set_argument)
