from traindx.analysis.errors.call_messages import NORM_OF_ONE_VALUE
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("batchnorm-small-batch",))
def check(run: Run) -> Findings:
    """A normalization layer in train mode raises because there is one value per channel.

    ## What it detects
    "Expected more than 1 value per channel when training", and the same of instance norm.

    ## Why it matters
    One value has no variance to normalize by. Usually it is the last batch of an epoch: the
    remainder of the dataset size divided by the batch size.

    ## What to do
    `drop_last=True` for the training loader, another batch size, or a norm that does not look at
    the batch; in validation, call `model.eval()`.

    ## When it is wrong
    In inference the model should be in eval mode; then the batch is not at fault.
    """
    yield from findings(run, NORM_OF_ONE_VALUE)


FIRES = {
    "the last batch": failed(
        "ValueError: Expected more than 1 value per channel when training, got input size "
        "torch.Size([1, 32])",
        "out = model(x)",
    )
}

SILENT = {
    "near miss: another batch size": failed(
        "ValueError: Expected input batch_size (32) to match target batch_size (16)."
    ),
    "near miss: a wrong number of channels": failed(
        "RuntimeError: running_mean should contain 64 elements not 32"
    ),
}
