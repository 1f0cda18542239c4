"""Tensors of different types met in one operation."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.errors.messages import KnownError, finding, known_error
from traindx.analysis.errors.precision_messages import DTYPES
from traindx.analysis.errors.written_calls import float64_from_numpy
from traindx.examples import make_failed_run
from traindx.model.findings import Finding
from traindx.model.run import Run
from traindx.registry import detector

CLASSES = ("Long", "Long or Byte")

DOUBLE = {"double", "float64"}

HALF = {"half", "bfloat16", "c10::half", "c10::bfloat16"}

INTEGERS = {"long", "int", "byte", "unsigned char", "bool", "short", "char", "long long"}


@detector(needs=("failure",), suggests=("dtype-mismatch",))
def check(run: Run) -> Iterator[Finding]:
    """An operation gets tensors of types that it cannot combine.

    ## What it detects
    "expected scalar type Float but found Double", "mat1 and mat2 must have the same dtype", a
    kernel "not implemented for 'Int'", class labels that are not int64, and their older forms. With
    the source: where numpy's float64 becomes a tensor.

    ## Why it matters
    The types differ since the data were made; a cast in front of the failing layer only moves the
    error to the next one.

    ## What to do
    Convert once, where the data become tensors: inputs to float32, class indices to int64.

    ## When it is wrong
    Under autocast the clash may come from a custom function that casts by itself.
    """
    known = known_error(run, DTYPES)
    if known is None or (known.kind == "layer" and _is_on_two_devices(known)):
        return
    got, wanted = _dtype(known["got"]), _dtype(known["wanted"])
    is_double = bool(DOUBLE & {got.lower(), wanted.lower()})
    culprit = float64_from_numpy(run, known.failure) if is_double else None
    claim = known.claim(got=got, wanted=wanted, hint=_hint(wanted, got))
    yield finding(known, claim, culprit=culprit)


def _is_on_two_devices(known: KnownError) -> bool:
    return ("cuda" in known["got"]) != ("cuda" in known["wanted"])


def _dtype(name: str) -> str:
    """The dtype in the name of a tensor's class, such as torch.cuda.FloatTensor."""
    if name.startswith("torch.") and name.endswith("Tensor"):
        return name.rsplit(".", 1)[-1].removesuffix("Tensor")
    return name


def _hint(wanted: str, got: str) -> str:
    both = {wanted.lower(), got.lower()}
    if wanted in CLASSES:
        return "class labels have to be int64 (Long)"
    if DOUBLE & both:
        return "float64 is numpy's default, the weights are float32"
    if HALF & both:
        return "half precision meets full precision outside of autocast"
    if got.lower() in INTEGERS:
        return "integers go where real numbers are wanted"
    return "one of the two has to be converted where it is made"


_DATA = """
import numpy as np
import torch
x = torch.from_numpy(np.random.rand(64, 8))
loss = model(x).mean()
"""

FIRES = {
    "numpy data": make_failed_run(
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Double and Float",
        "loss = model(x).mean()",
        sources={"train.py": _DATA},
    ),
    "labels": make_failed_run(
        "RuntimeError: expected scalar type Long but found Float", "loss = criterion(out, y)"
    ),
    "labels on a GPU": make_failed_run(
        "RuntimeError: \"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Int'"
    ),
    "raw images": make_failed_run(
        "RuntimeError: Input type (unsigned char) and bias type (float) should be the same"
    ),
    "a recurrent layer": make_failed_run(
        "ValueError: RNN input dtype (torch.float64) does not match weight dtype (torch.float32)."
    ),
    "integer targets": make_failed_run(
        "RuntimeError: result type Float can't be cast to the desired output type Long"
    ),
}

FIRES["parameters of a sharded module"] = make_failed_run(
    "ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32",
    "trainer.train()",
)

SILENT = {
    "near miss: one type on two devices": make_failed_run(
        "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) "
        "should be the same"
    ),
    "another error": make_failed_run("RuntimeError: CUDA out of memory."),
}
