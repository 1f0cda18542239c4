from dataclasses import replace

from traindx.analysis.errors.culprits import explain
from traindx.analysis.errors.layer_messages import PRODUCTS
from traindx.analysis.errors.messages import KnownError, finding, known_error
from traindx.analysis.errors.shape_blame import (
    Blame,
    culprit_of,
    expression_of,
    find_blame,
    size_factors,
    title_of,
)
from traindx.analysis.program import project_of
from traindx.analysis.program.shapes.accounts import origin_of
from traindx.examples import failed
from traindx.model.run import Failure
from traindx.registry import Evidence, Finding, Findings, Run, Strength, detector


@detector(needs=("failure",), suggests=("shape-mismatch",))
def check(run: Run) -> Findings:
    """A matrix product gets sizes that do not fit.

    ## What it detects
    "mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)" and its older wordings. With
    the source, the layer that was built for the other size, the line it was built on, and how the
    size came about: 57600 = 64×30×30, since a 3×3 convolution without padding turns 32×32 into
    30×30. Without the source, how the number may be made of channels and image sides.

    ## Why it matters
    The line that raised is rarely the line at fault: the layer was built too small in `__init__`,
    or what is flattened into it was changed.

    ## What to do
    Build the layer for the size that it gets, or pool in front of it (`nn.AdaptiveAvgPool2d(1)`)
    so that the size no longer depends on the image.

    ## When it is wrong
    If the layer's size is meant, the layers in front of it are at fault: more pooling, another
    stride, or a smaller image would bring the size down.
    """
    known = known_error(run, PRODUCTS)
    if known is not None:
        yield _product(known) if known.kind == "matrices" else finding(known)


def _product(known: KnownError) -> Finding:
    got, wanted = known.number("got"), known.number("wanted")
    blame = find_blame(
        project_of(known.run), known.failure, lambda c: (c.expected, c.got) == (wanted, got)
    )
    if blame is not None and blame.layer is not None:
        return _blamed(known.run, known.failure, blame, got)
    found = finding(known, notes=known.note(size_factors(got, wanted)))
    return replace(found, strength=Strength.MODERATE)


def _blamed(run: Run, failure: Failure, blame: Blame, got: int) -> Finding:
    layer = blame.layer
    wanted = blame.conflict.expected
    fixed = "" if layer is None else f"; it should read {expression_of(layer, got)}"
    culprit = culprit_of(blame, f"{blame.name} is built here for {wanted} features{fixed}")
    claim = f"{title_of(blame)} is built for {wanted} features and receives {got}"
    account = origin_of(blame.trace, blame.conflict)
    notes = []
    if account:
        claim += f" ({account.split(':', 1)[0]})"
        pooled = f"; to keep {wanted} features, pool in front of the flatten (nn.AdaptiveAvgPool2d)"
        place = f"line {blame.conflict.line}"
        notes = [Evidence(account + pooled, blame.conflict.file, place)]
    return explain(run, failure, claim, shows="shape-mismatch", culprit=culprit, notes=notes)


_MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, kernel_size=3)
        self.fc1 = nn.Linear(64, 128)

    def forward(self, x):
        x = self.conv1(x)
        x = x.view(x.size(0), -1)
        return self.fc1(x)
"""
_ERROR = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)"

FIRES = {
    "a flattened image, with the source": failed(
        _ERROR, "return self.fc1(x)", sources={"model.py": _MODEL}
    ),
    "the message alone": failed(_ERROR),
    "the wording of torch 1.4": failed(
        "RuntimeError: size mismatch, m1: [4 x 57600], m2: [64 x 128] at "
        "/pytorch/aten/src/TH/generic/THTensorMath.cpp:136"
    ),
    "a batched product": failed(
        "RuntimeError: Expected size for first two dimensions of batch2 tensor to be: [2, 4] but "
        "got: [2, 5]."
    ),
}

SILENT = {
    "near miss: a checkpoint of another size": failed(
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc1.weight: "
        "copying a param with shape torch.Size([64, 128]) from checkpoint, the shape in current "
        "model is torch.Size([32, 128])."
    ),
    "another error": failed("RuntimeError: CUDA out of memory."),
}
