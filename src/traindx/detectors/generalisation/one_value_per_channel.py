"""Batch norm got a single value per channel while training."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.errors.call_messages import NORM_OF_ONE_VALUE
from traindx.analysis.errors.messages import findings
from traindx.examples import make_failed_run
from traindx.model.findings import Finding
from traindx.model.run import Run
from traindx.registry import detector


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
    yield from findings(run, NORM_OF_ONE_VALUE)


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
