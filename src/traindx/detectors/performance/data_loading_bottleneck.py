import re

import numpy as np
from numpy.typing import ArrayLike

from traindx.analysis.metrics.timings import bare_name, picked_time, usual_time
from traindx.analysis.program.training.loaders import waits_for_examples
from traindx.analysis.program.training.program import program_of
from traindx.analysis.recordings.ranks import training_loader
from traindx.examples import flat, logged, recorded, with_source
from traindx.model.recording import Loader, Place, Process
from traindx.registry import Findings, Run, Strength, cite, detector, finding

WAITING = re.compile(r"(^|[/_ ])(data|load|loader|fetch|dataload)", re.IGNORECASE)
WHOLE = re.compile(r"(^|[/_ ])(batch|step|iter|iteration|total)", re.IGNORECASE)
PLAIN = re.compile(r"^time$")  # what OpenMMLab, Detectron2 and torchvision call the whole step
UPDATE = re.compile(r"^updt_s$")  # LeRobot's for the step without its data
BOUND = 0.4  # of the step
# recorded steps are exact, but those of a toy model say nothing about a loader
ENOUGH_STEPS = 20
LEAST_STEP_S = 0.015
MOST = 0.6  # of a recorded step: on a busy machine workers get less of it than usual
IN_PLACE = 0.5  # of it, where the source shows that examples are fetched within the step


@detector(needs=("time/*",), suggests=("data-loading-bound",))
def check(run: Run) -> Findings:
    """The logged time for data is a large part of the logged time per step.

    ## What it detects
    A time for data and a time for the whole step, as many loops print them or as they were
    recorded, of which the first is 40 % or more of the second (medians, the first points left out).

    ## Why it matters
    The device waits that long in every step.

    ## What to do
    More workers, pinned memory, prefetching, cheaper or cached preprocessing, larger reads.

    ## When it is wrong
    Some loops log the data time as part of another unit or summed over workers; the two must be of
    one kind. Where it exceeds the whole step, nothing is said; nor of recorded steps that take less
    than 15 ms or wait for less than 60 % of them; 50 % are enough where a loader without workers
    is seen to read files, or to sleep, for every example or batch.
    """
    waiting = picked_time(run, WAITING)
    whole = picked_time(run, WHOLE) or picked_time(run, PLAIN) or picked_time(run, UPDATE)
    if waiting is None or whole is None or waiting.name == whole.name:
        return
    if PLAIN.search(bare_name(whole)) and len(whole) != len(waiting):
        return  # some other time, in other lines
    first, second = usual_time(waiting), usual_time(whole)
    second += first if UPDATE.search(bare_name(whole)) else 0.0
    share = first / second if second > 0 else 0.0
    if not BOUND <= share <= 1.0:
        return
    is_recorded = run.recording is not None and waiting.name == "time/data"
    main = run.recording.main if run.recording is not None and is_recorded else None
    loader = training_loader(main) if main is not None else None
    least = IN_PLACE if _fetches_in_place(run, loader) else MOST
    is_trifle = second < LEAST_STEP_S or len(waiting) < ENOUGH_STEPS or share < least
    if is_recorded and is_trifle:
        return
    by = f" (a loader with {loader.workers or 'no'} workers)" if loader is not None else ""
    says = f"{waiting.origin.name} is {first:.3g} of {whole.origin.name} {second:.3g} (medians)"
    yield finding(
        f"Data loading is the bottleneck: {share:.0%} of each step waits for data{by}",
        {"data-loading-bound": Strength.STRONG},
        cite(waiting, says, 0, -1, waiting=first, whole=second),
        shows="data-loading-bound",
        place=loader.place if loader is not None else None,
    )


def _fetches_in_place(run: Run, loader: Loader | None) -> bool:
    """Tell whether the training process itself reads files for its examples, by the source."""
    if loader is None or loader.workers or not run.sources:
        return False
    return waits_for_examples(program_of(run))


def _run(data: float, batch: float) -> Run:
    return logged(time_data_time=flat(50, data), time_batch_time=flat(50, batch))


def _recorded(data: ArrayLike, step: ArrayLike, text: str = "") -> Run:
    loader = Loader(2, 0, workers=0, place=Place("train.py", 12))
    run = recorded(Process(loaders=(loader,)), time_data=data, time_step=step)
    return with_source(run, text) if text else run


_READING = """
from PIL import Image

class Photos(Dataset):
    def __getitem__(self, i):
        return self.transform(Image.open(self.paths[i])), self.labels[i]
"""


FIRES = {
    "four fifths": _run(0.4, 0.5),
    "of a plain time": logged(time_data_time=flat(50, 0.4), time_time=flat(50, 0.5)),
    "beside the update": logged(time_data_s=flat(50, 0.6), time_updt_s=flat(50, 0.3)),
    "recorded": _recorded(flat(50, 0.4), flat(50, 0.5)),
    "recorded, half of it, and files are read": _recorded(flat(50, 0.28), flat(50, 0.5), _READING),
}

SILENT = {
    "near miss: the plain time is of an epoch": logged(
        time_data_time=flat(50, 0.4), time_time=flat(12, 0.5)
    ),
    "near miss: the update takes longer": logged(
        time_data_s=flat(50, 0.1), time_updt_s=flat(50, 0.3)
    ),
    "hidden behind compute": _run(0.01, 0.5),
    "near miss: a fifth": _run(0.1, 0.5),
    "near miss: recorded, only the first batches": _recorded(
        np.r_[flat(8, 5.0), flat(42, 0.01)], np.r_[flat(8, 5.5), flat(42, 0.5)]
    ),
    "near miss: recorded, tiny steps": _recorded(flat(50, 0.001), flat(50, 0.002)),
    "near miss: recorded, half of it": _recorded(flat(50, 0.28), flat(50, 0.5), "import torch"),
    "near miss: recorded, few steps": _recorded(flat(12, 0.4), flat(12, 0.5)),
    "no whole step known": logged(time_data_time=flat(50, 0.4)),
}
