from dataclasses import replace
from math import prod

import numpy as np

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.training.checkpoints import saves_in_every_step
from traindx.analysis.program.training.claims import cite as cite_source
from traindx.analysis.program.training.claims import each_place
from traindx.analysis.recordings.observations import processes_of
from traindx.examples import Model, Parameter, Process, recorded
from traindx.model.run import Series, Source
from traindx.registry import Finding, Findings, Run, Strength, cite, detector, finding

CALL_S = 5e-4  # to pickle, zip and write even a small file; more on a network
BYTES_PER_S = 1e9  # of a fast disk
NOTICED = 0.05  # of a step: the share that is spent on saving at the least
ENOUGH = 30  # steps: a run that saves a dozen times saves seldom


@detector(needs=("source", "recording", "time/*"), suggests=("checkpoint-overhead",))
def check(run: Run) -> Findings:
    """The loop over batches saves a checkpoint without a condition, and steps are short.

    ## What it detects
    `torch.save` or the like in every turn of the innermost loop that steps the optimizer, there or
    in a function that it calls, where the recorded steps are so short that writing a file of the
    model's size takes a twentieth of them even on a fast disk.

    ## Why it matters
    Training waits while the file is written, and most of those states are never used.

    ## What to do
    Save every few minutes or once per epoch; keep the last few and the best.

    ## When it is wrong
    A loop whose step is a whole epoch, or takes seconds, may well save each time; the time per step
    tells. How long the saving took is not recorded, so the least that it can take is compared.
    """
    taken = run.get("time/step")
    times = taken.finite() if taken is not None else None
    if times is None or len(times) < ENOUGH:
        return
    step_s = float(np.median(times.values))
    size = _bytes(run)
    for save, count in each_place(run, saves_in_every_step, lambda save: (save[0].node, save[1])):
        share = count * (CALL_S + size / BYTES_PER_S) / step_s
        if share >= NOTICED:
            yield _finding(save, times, count, step_s, share)
            return


def _finding(save: ProgramEvent, times: Series, count: int, step_s: float, share: float) -> Finding:
    often = "a checkpoint" if count == 1 else f"{count} checkpoints"
    taken = f"a step takes {1000 * step_s:.3g} ms, and saving takes {min(share, 1):.0%} of it "
    return finding(
        f"Every training step saves {often}, and a step takes only {1000 * step_s:.3g} ms",
        {"checkpoint-overhead": Strength.STRONG},
        cite_source(save, f"`{save.name.lstrip('.')}` runs in every step"),
        cite(times, f"{taken}or more even on a fast disk", 0, -1),
        place=save.location,
    )


def _bytes(run: Run) -> float:
    shapes = {(m.id, p.name): p.shape for q in processes_of(run) for m in q.models
              for p in m.parameters}  # fmt: skip
    return 4.0 * sum(prod(s) for s in shapes.values())


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in train_loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(data), target)
    loss.backward()
    optimizer.step()
    {save}
{after}
"""
_SAVE = 'torch.save(model.state_dict(), "last.pt")'


def _run(save: str, step_s: float, after: str = "") -> Run:
    model = Model(1, type="Net", parameters=(Parameter("0.weight", (64, 64)),))
    run = recorded(Process(models=(model,)), time_step=np.full(60, step_s))
    return replace(run, sources=(Source("train.py", _LOOP.format(save=save, after=after)),))


FIRES = {
    "every step": _run(_SAVE, 0.005),
    "several times a step": _run(f"for i in range(4):\n        {_SAVE}", 0.02),
}

SILENT = {
    "near miss: every hundredth step": _run(f"if step % 100 == 0:\n        {_SAVE}", 0.005),
    "near miss: steps of a second": _run(_SAVE, 1.0),
    "near miss: after the loop": _run("pass", 0.005, _SAVE),
}
