"""Says why a neural-network training run went wrong, shows the evidence, and proves the fix."""

from __future__ import annotations

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.api import diagnose, explain, open_run, route, verify
    from traindx.errors import TraindxError
    from traindx.evidence import Diagnosis, Evidence, Experiment, Finding, Hypothesis
    from traindx.model import Run, Series
    from traindx.watching import watch

__version__ = "0.1.0"

__all__ = [
    "Diagnosis",
    "Evidence",
    "Experiment",
    "Finding",
    "Hypothesis",
    "Run",
    "Series",
    "TraindxError",
    "__version__",
    "diagnose",
    "explain",
    "open_run",
    "route",
    "verify",
    "watch",
]

_HOME = {
    "diagnose": "traindx.api",
    "explain": "traindx.api",
    "open_run": "traindx.api",
    "route": "traindx.api",
    "verify": "traindx.api",
    "TraindxError": "traindx.errors",
    "Diagnosis": "traindx.evidence",
    "Evidence": "traindx.evidence",
    "Experiment": "traindx.evidence",
    "Finding": "traindx.evidence",
    "Hypothesis": "traindx.evidence",
    "Run": "traindx.model",
    "Series": "traindx.model",
    "watch": "traindx.watching",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that importing the package costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'traindx' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
