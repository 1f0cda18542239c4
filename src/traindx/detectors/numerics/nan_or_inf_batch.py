from math import nan
from typing import Any

from traindx.analysis.recordings.breakdowns import BreakdownKind, breakdown_of
from traindx.analysis.recordings.broken_steps import SHOWN, broke_before, cite_batch, gives_nan
from traindx.analysis.recordings.observations import processes_of, summary_words
from traindx.examples import LossInput, NonFinite, Process, Summary, recorded, sampled
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "nan-in-data"


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """NaN or infinity comes in with the batch.

    ## What it detects
    The record of a replayed step whose batch held NaN or infinity, or a sampled batch that did and
    whose step then had outputs or a loss that were not finite.

    ## Why it matters
    No setting of the optimizer helps: the loss of such a batch is NaN for any weights.

    ## What to do
    Look at the kept batch, find the file or row, and drop or fill it where the data are made. An
    `assert torch.isfinite(x).all()` in the dataset names the next one.

    ## When it is wrong
    Tables with missing values that the model masks are right to hold NaN; where the loss stays a
    number nothing is said. Attention masks of −inf in a batch are left alone in the same way.
    """
    found = breakdown_of(run)
    if found is not None:
        if found.kind is BreakdownKind.DATA:
            told = next((s for s in found.record.inputs if s.nonfinite), None)
            what = f" ({summary_words(told)})" if told is not None else ""
            claim = f"The batch of step {found.record.step} contains NaN or infinity{what}"
            cited = cite_batch(found.process, found.record)
            yield finding(claim, CAUSE, *cited, place=found.record.place)
        return
    for process in processes_of(run):
        for sample in process.samples:
            broken = [s for s in sample.batch if s.nonfinite]
            if broken and gives_nan(process, sample) and not broke_before(process, sample):
                what = "; ".join(summary_words(s) for s in broken[:SHOWN])
                says = f"the batch of step {sample.step} holds {what}; its outputs are NaN"
                evidence = cite_record(process, sample.line, says, step=float(sample.step))
                claim = f"The batch of step {sample.step} contains NaN or infinity ({what})"
                yield finding(claim, CAUSE, evidence)
                return


_BROKEN = Summary("0", (32, 8), "float32", "cpu", -2.0, 2.0, 0.0, 1.0, nonfinite=3)
_SOUND = Summary("0", (32, 8), "float32", "cpu", -2.0, 2.0, 0.0, 1.0)


def _sample(outputs: int, summary: Summary = _BROKEN, **told: Any) -> Run:
    given = LossInput("mse_loss", "addmm", Summary(shape=(32, 1), nonfinite=outputs))
    return recorded(sampled(1, step=30, losses=(given,), batch=(summary,), **told))


FIRES = {
    "a replayed step": recorded(
        Process(nonfinite=(NonFinite(9, 57, phase="data", inputs=(_BROKEN,), kept="incidents/1"),))
    ),
    "a sampled batch": _sample(3),
}

SILENT = {
    "near miss: missing values that the model masks": _sample(0),
    "near miss: the loss breaks on a sound batch": _sample(32, _SOUND),
    "near miss: broken weights spoil the state that is fed back": _sample(
        32, weight_norms=(nan, nan)
    ),
    "near miss: an operation broke": recorded(
        Process(nonfinite=(NonFinite(9, 57, phase="forward", op="log", is_exact=True),))
    ),
}
