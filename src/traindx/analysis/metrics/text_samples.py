"""Texts that a model generated during training."""

from traindx.analysis.curves import cycle_of
from traindx.model.findings import Evidence
from traindx.model.run import Run, TextSample

SHOWN = 40  # characters of a sample in a claim


def cite_text(sample: TextSample) -> Evidence:
    """Cite what the model generated, as far as it fits."""
    text = " ".join(sample.text.split())
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    span = None if sample.step is None else (sample.step, sample.step)
    return Evidence(f"the model generated {shown!r}", sample.artifact, sample.locator, span)


def repeated_cycle(run: Run) -> str | None:
    """Return what the model repeats in its last outputs, if that is all they are."""
    cycles = [cycle_of(s.text) for s in run.samples[-3:]]
    return cycles[-1] if len(cycles) > 1 and all(cycles) else None
