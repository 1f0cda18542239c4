"""The scale of a gradient scaler and the steps that it skips."""

import re

from traindx.model.run import Event, Run

USELESS = 1.0  # at a scale of one nothing is left to scale; healthy scales stay above a hundred
REDUCED = re.compile(r"(?i)reducing (?:loss scale )?to ([\d.e+-]*\d)")  # apex, and DeepSpeed


def skips_to_the_end(run: Run, skips: list[Event]) -> bool:
    """Tell whether steps are skipped up to the end, at a scale of next to nothing."""
    loss = run.main_loss()
    last = skips[-1].step
    told = [float(m[1]) for e in skips if (m := REDUCED.search(e.text)) is not None]
    if told and told[-1] > USELESS:
        return False  # a scaler tries a higher scale now and then, and takes it back
    return loss is None or last is None or last >= 0.9 * float(loss.steps[-1])
