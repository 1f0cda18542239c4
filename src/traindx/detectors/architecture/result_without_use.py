from dataclasses import replace

from traindx.analysis.recordings.traces import unreached
from traindx.analysis.steps.dead_ends import dead_ends, idle_parameters
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import captured, recorded, step_of, watched, weights
from traindx.registry import Findings, Run, detector, finding

CAUSE = "unused-parameters"
ENOUGH = 4  # samples: a head that is used in turns shows up by then


@detector(needs=("step",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A layer is computed and its result leads to no loss.

    ## What it detects
    In the operations of a captured step: trainable weights whose last result is used for nothing,
    computed from a part of the batch that counts nowhere else, and that had no gradient in any of
    four or more sampled steps.

    ## Why it matters
    The layer costs time and learns nothing: `forward` computes it and then uses another variable.

    ## What to do
    Look at the line where the result is made, and use it in what follows; or remove the layer.

    ## When it is wrong
    Parts that a library model computes for other tasks (a pooler) are left alone: only a result
    that the program's own model makes counts.
    """
    for process in run.recording.processes if run.recording is not None else ():
        never = {t.name for traces in unreached(process, ENOUGH).values() for t in traces}
        steps = list(steps_of(run, training=True))
        names = frozenset(idle_parameters(steps) & never)
        for step in steps if names and "pooler" not in " ".join(names) else ():
            lost = {n for n in step.nodes if n.is_batch and n.users and n not in step.learning}
            for end in dead_ends(step, names):
                if not any(n.depends_on(z) for z in lost for n in end.act.outputs):
                    continue  # its input counts on another way
                which = ", ".join(sorted(end.parameters)[:3])
                says = f"the last result that {which} is used for"
                claim = f"The result of {which} is computed and used for no loss"
                yield finding(claim, CAUSE, step.cite(end.act, says), place=end.act.place)
                return


_STEP = """
x: batch/0 (32, 8)
y: batch/1 (32)
z: batch/2 (32, 8)
a: parameter:a.weight (8, 8)
b: parameter:b.weight (8, 8)
h (32, 8) = mm(x, a) in a
g (32, 8) = mm({b}, b) in b @ 33
{line}
loss () = nll_loss({end}, y)
"""


def _run(line: str = "p (32, 8) = log_softmax(h)", b: str = "z", grad: float | None = None) -> Run:
    step = step_of(_STEP.format(line=line, b=b, end="p"))
    process = watched(
        *weights("a.weight", "b.weight"), grads=(0.1, grad), still=("b.weight",), count=6
    )
    made = captured(step).recording
    assert made is not None
    return recorded(replace(process, captured=made.processes[0].captured))


FIRES = {
    "a branch beside the others": _run(),
    "a branch with an activation": _run("r (32, 8) = relu(g)\np (32, 8) = log_softmax(h)"),
}

SILENT = {
    "near miss: a last block that hands on more than is used": _run(b="h"),
    "used": _run("s (32, 8) = add(h, g)\np (32, 8) = log_softmax(s)", grad=0.1),
    "near miss: it gets gradients in other steps": _run(grad=0.1),
}
