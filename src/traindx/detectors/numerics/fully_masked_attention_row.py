from traindx.analysis.recordings.breakdowns import BreakdownKind, breakdown_of
from traindx.analysis.recordings.broken_steps import masked_softmax
from traindx.analysis.recordings.observations import processes_of
from traindx.examples import Activation, NonFinite, Place, Process, Summary, recorded, sampled
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

CAUSE = "fully-masked-attention"


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A softmax gets a row of −inf and gives NaN.

    ## What it detects
    A softmax (or an attention that holds one) that is the first operation to give NaN while its
    input is −inf in places and finite elsewhere, or rows of a sampled softmax that came out as NaN.

    ## Why it matters
    A softmax over nothing is 0/0. A query that is itself padding, or an empty sequence, is enough
    to lose every weight.

    ## What to do
    Let such a row attend to something (itself), mask with a large negative number in place of −inf,
    or set the rows of padded queries to 0 after the softmax with `torch.where`.

    ## When it is wrong
    Rows of a softmax are NaN as well when what came before is NaN; only the first operation to
    break is named, and rows of a sample count only while its other activations are finite.
    """
    found = breakdown_of(run)
    if found is not None:
        if found.kind is BreakdownKind.MASKED:
            where = found.title[0].upper() + found.title[1:]
            yield finding(
                f"{where} gives NaN at step {found.record.step}: {found.why}",
                CAUSE if found.is_shown else {CAUSE: Strength.STRONG},
                *found.evidence,
                against={"nan-in-data": Strength.STRONG, "lr-too-high": Strength.STRONG},
                place=found.record.place,
            )
        return
    for process in processes_of(run):
        for sample in process.samples:
            masked = masked_softmax(sample)
            if masked is None:
                continue
            says = f"{masked.masked_rows} rows of {masked.op} above {masked.name} are NaN"
            yield finding(
                f"Attention has rows in which every key is masked: {says}",
                {CAUSE: Strength.STRONG},
                cite_record(process, sample.line, says, step=float(sample.step)),
            )
            return


_SCORES = Summary("self", (4, 8, 8), "float32", "cpu", float("-inf"), 2.0, nonfinite=20)
_LINE = Place("model.py", 31, "forward", "weights = scores.softmax(dim=-1)")


def _broken(scores: Summary, op: str = "_softmax") -> Run:
    record = NonFinite(
        9, 3, phase="forward", op=op, module="attn", place=_LINE, inputs=(scores,), is_exact=True
    )
    return recorded(Process(nonfinite=(record,)))


def _softmax(masked_rows: int) -> Run:
    activation = Activation("attn.qkv.weight", "softmax", (4, 8, 8), masked_rows=masked_rows)
    return recorded(sampled(1, activations=(activation,)))


FIRES = {"replayed": _broken(_SCORES), "sampled": _softmax(2)}

SILENT = {
    "near miss: a causal mask": _softmax(0),
    "near miss: every row is NaN, so what came before is": _softmax(32),
    "near miss: the scores overflow": _broken(
        Summary("self", (4, 8, 8), "float32", "cpu", 1.0, float("inf"), nonfinite=20)
    ),
    "another operation": _broken(_SCORES, "log"),
}
