"""The diagnosis as JSON: the contract with scripts, editors and assistants."""

from __future__ import annotations

import json
import math
from typing import Any

from traindx.model.findings import Diagnosis
from traindx.model.run import Run


def render(run: Run, diagnosis: Diagnosis) -> str:
    """Return strict JSON in ASCII: nothing in it can act on a terminal that shows it."""
    return json.dumps(strict(diagnosis.to_dict()), indent=2, allow_nan=False)


def strict(value: Any) -> Any:
    """Return a value in which NaN and infinity, for which JSON has no number, are words."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    return value
