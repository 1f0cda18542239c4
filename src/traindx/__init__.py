"""Says why a neural-network training run went wrong, shows the evidence, and proves the fix."""

from __future__ import annotations

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.api import diagnose, explain, open_run, probe, route, run, verify, watch
    from traindx.errors import TraindxError
    from traindx.model.findings import Diagnosis, Evidence, Experiment, Finding, Hypothesis
    from traindx.model.run import Run, Series

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
    "probe",
    "route",
    "run",
    "verify",
    "watch",
]

_HOME = {
    "diagnose": "traindx.api",
    "explain": "traindx.api",
    "open_run": "traindx.api",
    "probe": "traindx.api",
    "route": "traindx.api",
    "run": "traindx.api",
    "verify": "traindx.api",
    "TraindxError": "traindx.errors",
    "Diagnosis": "traindx.model.findings",
    "Evidence": "traindx.model.findings",
    "Experiment": "traindx.model.findings",
    "Finding": "traindx.model.findings",
    "Hypothesis": "traindx.model.findings",
    "Run": "traindx.model.run",
    "Series": "traindx.model.run",
    "watch": "traindx.api",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that importing the package costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'traindx' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
