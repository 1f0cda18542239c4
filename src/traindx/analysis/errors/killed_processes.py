"""What is known about a process that was killed from outside."""

from traindx.analysis.errors.environment_messages import HOST_OUT_OF_MEMORY
from traindx.analysis.errors.messages import read
from traindx.model.findings import Strength
from traindx.model.run import Event, Failure, Run


def causes_of_kill(run: Run, failure: Failure) -> dict[str, Strength]:
    """Return the causes of a kill: the memory of the host where that is told."""
    texts = [failure.message, *(e.text for e in run.events if e.kind == "killed")]
    if any(read(t, HOST_OUT_OF_MEMORY) for t in texts):
        return {"host-memory-growth": Strength.STRONG, "killed-by-host": Strength.WEAK}
    return {"killed-by-host": Strength.STRONG, "host-memory-growth": Strength.WEAK}


def went_on(run: Run, event: Event) -> bool:
    """Tell whether metrics follow the event: a pre-empted job that was resumed was not lost."""
    later = (s.position_of(event) for s in run.series.values())
    resumed = any(e.kind == "resume" and e.artifact != event.artifact for e in run.events)
    return resumed or any(
        at is not None and at < len(series)
        for at, series in zip(later, run.series.values(), strict=True)
    )
