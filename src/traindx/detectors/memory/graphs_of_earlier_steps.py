from collections.abc import Sequence

from traindx.analysis.recordings.memory_growth import has_growing_graph, kept_graphs
from traindx.analysis.recordings.traces import per_process
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Process
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "graph-kept-alive"


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """The graphs of earlier steps are still there: something that has a history is kept.

    ## What it detects
    Of the autograd graphs of the steps that were looked at, most are alive many steps later, in
    several samples in a row.

    ## Why it matters
    A loss that is added up, or an output in a list, holds all that led to it. Memory grows with
    every step until it runs out.

    ## What to do
    Keep numbers: `total += loss.item()`, `outputs.append(out.detach())`.

    ## When it is wrong
    Where each step's graph contains those before it, the hidden state is at fault and not a list;
    that is told apart. Steps that are kept until the end of an epoch are meant all the same.
    """
    kept = kept_graphs(process)
    if kept and not has_growing_graph(process):
        last = kept[-1]
        says = (
            f"at step {last.step} the graphs of {last.kept_graphs} of {last.past_graphs} earlier "
            "sampled steps are alive"
        )
        yield finding(
            f"Graphs of earlier steps are kept: {last.kept_graphs} of {last.past_graphs} are alive "
            f"at step {last.step}",
            CAUSE,
            cite_record(process, last.line, says, step=last.step, kept=last.kept_graphs),
            onset=kept[0].step,
            place=last.place,
        )


def _run(kept: Sequence[int], past: Sequence[int], nodes: Sequence[int] = (90,) * 8) -> Run:
    return recorded(
        watched(
            *weights("0.weight"), count=len(kept), kept_graphs=lambda i: kept[i],
            past_graphs=lambda i: past[i], graph_nodes=lambda i: nodes[i],
        )
    )  # fmt: skip


_PAST = range(8)

FIRES = {
    "a loss that is added up": _run(range(8), _PAST),
    "a list that is emptied after an epoch": _run((0, 1, 2, 3, 4, 5, 0, 1), _PAST),
}

SILENT = {
    "each graph goes with its step": _run((0,) * 8, _PAST),
    "near miss: the best one is kept": _run((0, 1, 1, 1, 1, 1, 1, 1), _PAST),
    "near miss: once, before garbage is collected": _run((0, 0, 0, 3, 0, 0, 0, 0), _PAST),
    "near miss: a hidden state that is not detached": _run(
        range(8), _PAST, nodes=tuple(90 * (50 * i + 1) for i in range(8))
    ),
}
