"""A diagnosis of training code alone: only source can be asked for, and only faults are told."""

from __future__ import annotations

from dataclasses import replace

from traindx.analysis.program import project_of
from traindx.diagnosis.engine import diagnose
from traindx.model.findings import Diagnosis, Skipped
from traindx.model.run import Run


def diagnose_code(run: Run, *, deadline: float | None = None) -> Diagnosis:
    """Diagnose a run that is source and nothing else; what other artifacts would show is no gap."""
    diagnosis = diagnose(run, deadline=deadline)
    missed = tuple(s for s in diagnosis.skipped if not s.detector or not s.needs)
    parsed = {m.path for m in project_of(run).modules}
    broken = [s.path for s in run.sources if s.path not in parsed]
    unparsed = tuple(Skipped("", (p,), f"{p}: not Python that can be parsed") for p in broken)
    summary = diagnosis.summary
    if not diagnosis.root_causes:
        count = f"{len(run.sources)} {'file' if len(run.sources) == 1 else 'files'}"
        summary = f"No fault shown in {count}." if run.sources else "No file here uses torch."
    return replace(diagnosis, summary=summary, skipped=(*missed, *unparsed))
