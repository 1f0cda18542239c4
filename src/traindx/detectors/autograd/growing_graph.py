from traindx.analysis.recordings.memory_growth import contains_earlier_graphs, counted_graphs
from traindx.analysis.recordings.traces import per_process
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Process
from traindx.registry import Findings, Run, cite_record, detector, finding

ENOUGH = 4  # samples


@detector(needs=("recording",), suggests=("graph-retained-across-steps",))
@per_process
def check(process: Process) -> Findings:
    """Every step's graph contains those of the steps before.

    ## What it detects
    The number of operations below the loss that rises in every sample, in proportion to the number
    of steps, by a good part of a whole step's graph per step.

    ## Why it matters
    Backward goes through the whole history: steps get slower and memory grows until it runs out.

    ## What to do
    Detach what is carried from step to step (a hidden state, a running loss), and drop
    `retain_graph=True`.

    ## When it is wrong
    Sequences of varying length make graphs that grow and shrink; a curriculum makes them grow
    slowly. Neither adds a good part of a step's graph with every step.
    """
    for id in sorted({s.optimizer for s in process.samples}):
        samples = [s for s in process.samples if s.optimizer == id and s.graph_nodes > 0]
        samples = counted_graphs(samples)
        if len(samples) < ENOUGH or not contains_earlier_graphs(samples):
            continue
        first, last = samples[0], samples[-1]
        says = (
            f"{first.graph_nodes} operations at step {first.step}, {last.graph_nodes} at step "
            f"{last.step}"
        )
        yield finding(
            f"The autograd graph grows with every step: {says}",
            "graph-retained-across-steps",
            cite_record(process, first.line, says, step=first.step, nodes=first.graph_nodes),
            cite_record(
                process,
                last.line,
                f"{last.graph_nodes} operations in the graph",
                step=last.step,
                nodes=last.graph_nodes,
            ),
            place=last.place,
        )


def _run(*nodes: int) -> Run:
    made = watched(*weights("0.weight"), count=len(nodes), graph_nodes=lambda i: nodes[i])
    return recorded(made)


FIRES = {
    "a hidden state that is not detached": _run(20, 220, 420, 620, 820, 1020),
    "up to the end of counting": _run(500, 5500, 10500, 15500, 20000, 20000),
}

SILENT = {
    "the same in every step": _run(*[120] * 8),
    "near miss: sequences of varying length": _run(100, 140, 90, 180, 130, 240),
    "near miss: a curriculum of lengths": _run(100, 120, 140, 160, 180, 200, 220),
    "near miss: two kinds of batches": _run(100, 300, 100, 300, 100, 300),
}
