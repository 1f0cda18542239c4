from dataclasses import replace
from typing import Any

from traindx.analysis.recordings.observations import processes_of
from traindx.analysis.steps.padding import counted_padding
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import captured, step_of
from traindx.model.recording import LossInput, Process, Recording, Sample
from traindx.registry import Findings, Run, detector, finding

CAUSE = "padding-in-loss"
COMMON = 0.1  # of the targets: rarer padding does little
SEVERAL = 3  # samples


@detector(needs=("step",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The loss counts padding: the token that the embedding pads with is a target like any other.

    ## What it detects
    In a captured step: an embedding with a `padding_idx`, and a cross-entropy over as many classes
    as the table has rows whose `ignore_index` is another one; and in sampled steps that token as
    the target of a good part of the positions.

    ## Why it matters
    The model is rewarded for padding. The loss looks low, and generated text ends early or is
    empty.

    ## What to do
    `CrossEntropyLoss(ignore_index=pad_id)`, or set the targets of padding to -100.

    ## When it is wrong
    Where the token also ends a text, a few of these targets are meant.
    """
    shares = [s for p in processes_of(run) for s in _shares(p)]
    for step in steps_of(run, training=True):
        for found in counted_padding(step):
            seen = [labels.get(str(found.token), 0.0) for labels in shares]
            if len(seen) < SEVERAL or min(seen) < COMMON:
                continue
            share = sum(seen) / len(seen)
            says = (
                f"{100 * share:.0f} % of the targets are token {found.token}, the padding of "
                f"{found.table.label}, and the loss does not ignore it"
            )
            claim = f"{100 * share:.0f} % of the targets are padding, and they count in the loss"
            yield finding(claim, CAUSE, step.cite(found.act, says), place=found.act.place)
            return


def _shares(process: Process) -> list[dict[str, float]]:
    """Return how often each label was a target, in each sample."""
    told = [dict(i.labels) for s in process.samples for i in s.losses if i.labels]
    return [{k: n / sum(x.values()) for k, n in x.items()} for x in told]


_STEP = """
t: batch/0 (8, 32)
y: batch/1 (8, 32)
w: parameter:tok.weight ({rows}, 16)
v: parameter:head.weight (100, 16)
h (8, 32, 16) = embedding(w, t) in tok
o (256, 100) = mm(h, v) in head
p (256, 100) = log_softmax(o)
loss () = nll_loss(p, y)
"""


def _run(
    ignored: int = -100, padding: int = 0, share: int = 60, rows: int = 100, reduction: int = 1
) -> Run:
    facts: dict[str, Any] = {
        "h": {"settings": {"padding_idx": padding}},
        "loss": {"settings": {"reduction": reduction, "ignore_index": ignored}},
    }
    run = captured(step_of(_STEP.format(rows=rows), **facts))
    labels = {str(max(padding, 0)): share, "7": 100 - share}
    sample = Sample(3, losses=(LossInput("cross_entropy", classes=100, labels=labels),))
    assert run.recording is not None
    process = replace(run.recording.processes[0], samples=(sample,) * 4)
    return replace(run, recording=Recording((process,)))


FIRES = {
    "no ignore_index": _run(),
    "another token is ignored": _run(ignored=0, padding=1),
    "a sum over the targets": _run(reduction=2),
}

SILENT = {
    "padding is ignored": _run(ignored=0),
    "near miss: a table without padding": _run(padding=-1),
    "near miss: another vocabulary": _run(rows=500),
    "near miss: hardly any": _run(share=2),
    "near miss: a mask may follow": _run(reduction=0),
}
