"""torch-audit: `autopatch` at every step, read at the end."""

from __future__ import annotations

import importlib
from typing import Any

audit = importlib.import_module("torch_audit")
auditors: list[Any] = []
LEVELS = ("WARN", "ERROR", "FATAL")
OWN_TROUBLE = "TA000"  # one of its rules crashed, which says nothing of the program


def attach(model: Any, optimizer: Any, is_classifier: bool) -> None:
    """Patch the model and the optimizer, without a reporter."""
    auditors.append(
        audit.autopatch(
            model,
            optimizer=optimizer,
            every_n_steps=1,
            reporters=[],
            run_static=True,
            run_init=True,
        )
    )


def finish() -> list[dict[str, str]]:
    """Return its findings with the texts of their rules."""
    alarms = {}
    for auditor in auditors:
        result = auditor.finish(report=False)
        for finding in result.findings:
            is_own = finding.suppressed or finding.rule_id == OWN_TROUBLE
            if is_own or finding.severity.value not in LEVELS:
                continue
            rule = result.rules.get(finding.rule_id)
            title = f"{rule.title}. {rule.description}" if rule else ""
            key = f"{finding.rule_id} {finding.module_path} {finding.entity}"
            says = f"{finding.message} {title}"
            alarms[key] = {"rule": key, "says": says, "adds": rule.remediation if rule else ""}
    return list(alarms.values())
