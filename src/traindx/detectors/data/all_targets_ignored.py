from traindx.analysis.recordings.breakdowns import Breakdown, BreakdownKind, breakdown_of
from traindx.analysis.recordings.observations import processes_of
from traindx.examples import LossInput, NonFinite, Process, Sample, Summary, recorded
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

CAUSE = "padding-in-loss"
ALWAYS = "labels-all-masked"
ENOUGH = 3  # samples: not one unlucky batch


@detector(needs=("recording",), suggests=(CAUSE, ALWAYS))
def check(run: Run) -> Findings:
    """Every target of a batch is ignored, so that the loss is a mean of nothing.

    ## What it detects
    A cross-entropy of whose targets all are the ignored index while the loss is NaN, in a sampled
    step or in the replay of the first step that broke. Where it is so in every sample, the labels
    themselves are at fault and no single batch.

    ## Why it matters
    The mean over no target is 0/0. One such batch turns every weight into NaN.

    ## What to do
    Look at the labels of the batch: a prompt that fills the whole window, labels that were masked
    twice, an `ignore_index` that is a real class. Skip batches without a target.

    ## When it is wrong
    Batches of which a part is ignored, however large, are right; a sum over nothing is 0, not NaN.
    """
    found = breakdown_of(run)
    if found is not None:
        if found.kind is BreakdownKind.IGNORED:
            yield _broken(found, _cause(run))
        return
    for process in processes_of(run):
        for sample in process.samples:
            is_lost = any(r.step == sample.step for r in process.nonfinite)
            if is_lost and any(i.ignored == 1.0 for i in sample.losses):
                says = f"all targets of step {sample.step} are ignored, and the loss is NaN"
                claim = f"All targets of the batch at step {sample.step} are ignored by the loss"
                cited = cite_record(process, sample.line, says, step=sample.step)
                yield finding(claim, _cause(run), cited, place=sample.place)
                return


def _cause(run: Run) -> str:
    """Tell labels that are never there from a batch without any."""
    told = [i for p in processes_of(run) for s in p.samples for i in s.losses]
    is_always = len(told) >= ENOUGH and all(i.ignored == 1.0 for i in told)
    return ALWAYS if is_always else CAUSE


def _broken(found: Breakdown, cause: str) -> Finding:
    """The loss of sound logits is NaN only if nothing is counted."""
    record = found.record
    targets = [i for i in record.inputs if "int" in i.dtype and i.low == i.high]
    is_shown = found.is_shown and bool(targets)
    which = f" (all are {targets[0].low:.0f})" if targets else ""
    return finding(
        f"All targets of the batch at step {record.step} are ignored by the loss{which}",
        cause if is_shown else {cause: Strength.STRONG},
        *found.evidence,
        onset=record.step,
        place=record.place,
    )


_LOGITS = Summary("self", (64, 100), "float32", "cpu", -9.0, -0.1, -4.0, 1.0)
_NONE = Summary("target", (64,), "int64", "cpu", -100.0, -100.0, -100.0, 0.0)


def _replayed(op: str, *inputs: Summary) -> Run:
    record = NonFinite(9, 57, phase="loss", op=op, inputs=inputs, is_exact=True)
    return recorded(Process(nonfinite=(record,)))


def _sampled(ignored: float, *broken: NonFinite, count: int = 1) -> Run:
    given = LossInput("cross_entropy", classes=100, ignored=ignored)
    samples = tuple(Sample(3 + i, 20 + i, losses=(given,)) for i in range(count))
    return recorded(Process(samples=samples, nonfinite=broken))


_LOST = NonFinite(4, 20)

FIRES = {
    "sampled": _sampled(1.0, _LOST),
    "replayed": _replayed("nll_loss_forward", _LOGITS, _NONE),
    "in every batch": _sampled(1.0, _LOST, count=4),
}

SILENT = {
    "near miss: nearly all": _sampled(0.98, _LOST),
    "near miss: the loss is a number all the same": _sampled(1.0),
    "near miss: the logits overflow": _replayed(
        "nll_loss_forward", Summary("self", (64, 100), "float32", low=-1e30, high=0.0), _NONE
    ),
    "nothing is ignored": _sampled(0.0),
}
