"""Batch norm got a single value per channel while training."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

ONE_VALUE = re.compile(
    r"Expected more than 1 (?:value per channel|spatial element) when training, got input size "
    r"(?:torch\.Size\()?\[([\d, ]*)\]"
)


@detector(needs=("failure",), suggests=("batchnorm-small-batch",))
def check(run: Run) -> Iterator[Finding]:
    """A normalisation layer in train mode raises because there is one value per channel.

    ## What it detects
    "Expected more than 1 value per channel when training", and its kin for instance norm.

    ## Why it matters
    One value has no spread to normalise by. It is mostly the last batch of a pass, which is what
    the division of the data set by the batch size leaves, so the run ends after a whole epoch.

    ## What to do
    `drop_last=True` for the training loader, another batch size, or a norm that does not look at
    the batch; in validation, call `model.eval()`.

    ## When it is wrong
    In inference the model should be in eval mode; then the batch is not at fault.
    """
    hit = match_root(run, ONE_VALUE)
    if hit is None:
        return
    failure, found = hit
    shape = f"[{found[1]}]"
    claim = f"A normalisation layer in train mode got one value per channel: an input of {shape}"
    yield explain(run, failure, claim, shows="batchnorm-small-batch")


FIRES = {
    "the last batch": make_failed_run(
        "ValueError: Expected more than 1 value per channel when training, got input size "
        "torch.Size([1, 32])",
        "out = model(x)",
    )
}

SILENT = {
    "near miss: another batch size": make_failed_run(
        "ValueError: Expected input batch_size (32) to match target batch_size (16)."
    ),
    "near miss: a wrong number of channels": make_failed_run(
        "RuntimeError: running_mean should contain 64 elements not 32"
    ),
}
