from traindx.analysis.errors.layer_messages import CHANNELS, channel_hint, is_channels_last
from traindx.analysis.errors.messages import KnownError, finding, known_error
from traindx.analysis.errors.shape_blame import built_for, culprit_of, find_blame, title_of
from traindx.analysis.program import project_of
from traindx.examples import failed
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("failure",), suggests=("channel-mismatch",))
def check(run: Run) -> Findings:
    """A convolution or normalisation gets another number of channels than it was built for.

    ## What it detects
    "expected input[8, 1, 28, 28] to have 3 channels, but got 1 channels instead", "running_mean
    should contain 32 elements not 64", "expected 4D input (got 2D input)". The numbers tell whether
    images are grey, have the channels last, or a layer changed without its neighbour.

    ## Why it matters
    The layer that raised may be right, and the data or the layer in front of it wrong.

    ## What to do
    Build the layer for the channels that it gets; or convert the images where they are loaded; or
    bring NHWC arrays into NCHW order with `x.permute(0, 3, 1, 2)`.

    ## When it is wrong
    The number of channels is as the message says; which side should change is for you to decide.
    """
    known = known_error(run, CHANNELS)
    if known is not None:
        yield _ranks(known) if known.kind == "rank" else _channels(known)


def _channels(known: KnownError) -> Finding:
    shape, wanted, got = known.shape("shape"), known.number("wanted"), known.number("got")
    blame = find_blame(
        project_of(known.run),
        known.failure,
        lambda c: c.kind == "channels" and (c.expected, c.got) == (wanted, got),
    )
    is_layout = is_channels_last(shape, wanted)
    name = known.kind if blame is None else title_of(blame)
    claim = known.claim(layer=name, last=str(list(shape)) if is_layout else "")
    culprit = None if blame is None else culprit_of(
        blame, built_for(blame, wanted, got, is_layout=is_layout), is_repairable=not is_layout
    )  # fmt: skip
    notes = known.note(channel_hint(shape, wanted, got))
    return finding(known, claim, culprit=culprit, notes=notes)


def _ranks(known: KnownError) -> Finding:
    got = f"{known['got']}D"
    blame = find_blame(
        project_of(known.run), known.failure, lambda c: c.kind == "rank" and c.got == got
    )
    if blame is None:
        return finding(known, known.claim(layer="A layer"))
    says = f"{blame.name} is built here; {blame.conflict.text}"
    culprit = culprit_of(blame, says, is_repairable=False)
    return finding(known, known.claim(layer=title_of(blame)), culprit=culprit)


_MODEL = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 3)
        self.bn = nn.BatchNorm2d(32)

    def forward(self, x):
        return self.bn(self.conv(x))
"""

FIRES = {
    "grey images": failed(
        "RuntimeError: Given groups=1, weight of size [64, 3, 3, 3], expected input[8, 1, 28, 28] "
        "to have 3 channels, but got 1 channels instead"
    ),
    "channels last": failed(
        "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[8, 224, 224, "
        "3] to have 3 channels, but got 224 channels instead"
    ),
    "a norm that was forgotten": failed(
        "RuntimeError: running_mean should contain 64 elements not 32",
        "return self.bn(self.conv(x))",
        sources={"model.py": _MODEL},
    ),
    "flat input": failed("ValueError: expected 4D input (got 2D input)"),
    "the wording of torch 1.5": failed(
        "RuntimeError: Expected 4-dimensional input for 4-dimensional weight [64, 3, 3, 3], but "
        "got 3-dimensional input of size [3, 224, 224] instead"
    ),
}

SILENT = {
    "near miss: a dtype": failed(
        "RuntimeError: Input type (double) and bias type (float) should be the same"
    ),
    "another error": failed("ValueError: num_samples should be a positive integer value"),
}
