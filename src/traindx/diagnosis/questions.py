"""What to ask for where the evidence does not decide."""

from __future__ import annotations

from collections import Counter

from traindx.diagnosis.health import health_of
from traindx.diagnosis.hypotheses import is_refuted
from traindx.model.findings import SHOWN_FROM, Diagnosis, Status
from traindx.model.run import Run

ASKED_FOR = 3


def questions_of(draft: Diagnosis, status: Status, run: Run) -> list[str]:
    """Return what to ask for, most decisive first."""
    questions: dict[str, None] = {}
    if status is Status.HEALTHY and run.symptoms:
        return [f"If the trouble persists, any of these would help: {_most_wanted(draft)}"]
    if status in (Status.COMPLETE, Status.HEALTHY):
        return []
    undecided = (h for h in draft.hypotheses if h.confidence <= SHOWN_FROM and not is_refuted(h))
    for hypothesis in [h for h in undecided if h.cause not in draft.folded][:4]:
        if hypothesis.confirm_by:
            questions.setdefault(f"To decide on {hypothesis.cause}: {hypothesis.confirm_by}")
    if not run.has("loss") and not run.sources and not run.failures:
        questions.setdefault("Is there a console log, a metrics file, or the training script?")
    if not questions and run.series:
        questions |= dict.fromkeys(f"To judge more: {way}" for way in health_of(run).wanted)
    return list(questions)


def _most_wanted(draft: Diagnosis) -> str:
    """Return the ways to what most checks wait for."""
    ways = Counter(way for s in draft.skipped if s.needs for way in s.how.split("; "))
    return "; ".join(sorted(ways, key=lambda way: (-ways[way], way))[:ASKED_FOR])
