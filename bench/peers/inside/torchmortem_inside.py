"""torchmortem: its example, with the default sampling; findings and insights from its report."""

from __future__ import annotations

import importlib
from typing import Any

torchmortem = importlib.import_module("torchmortem")
autopsies: dict[int, Any] = {}


def attach(model: Any, optimizer: Any, is_classifier: bool) -> None:
    """Attach an autopsy to the model."""
    autopsy = torchmortem.Autopsy(model, optimizer=optimizer)
    autopsy.attach()
    autopsies[id(optimizer)] = autopsy


def after_step(name: str, loss: float, optimizer: Any) -> None:
    """Tell the autopsy of the model that was stepped; of any, where none was."""
    first = next(iter(autopsies.values()))
    autopsies.get(id(optimizer), first).step(loss=loss)


def finish() -> list[dict[str, str]]:
    """Return findings of the level warning or worse, and the insights made of them."""
    alarms = []
    for autopsy in autopsies.values():
        autopsy.detach()
        report = autopsy.get_report()
        found = [f for f in report.findings if f.severity.name in ("WARNING", "CRITICAL")]
        for item in [*found, *report.insights]:
            layers = ",".join(getattr(item, "affected_layers", ())[:3])
            rule = getattr(item, "rule_name", "") or f"{item.detector} {item.category} {layers}"
            alarms.append(
                {
                    "rule": rule,
                    "says": f"{item.title}. {item.summary}",
                    "adds": "\n".join([item.detail, *item.remediation]),
                }
            )
    return alarms
