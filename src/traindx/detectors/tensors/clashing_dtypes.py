"""Tensors of different types met in one operation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import Culprit, explain, make_failed_run, match_root, site_of
from traindx.source.module import Module, argument
from traindx.source.patches import Edit, diff

PAIR = re.compile(
    r"(?:mat1 and mat2|self and mat2|input and weight|\w+ and \w+) (?:must|to) have the same dtype"
    r",? but got:? ([\w.]+) and ([\w.]+)"
)
EXPECTED = re.compile(
    r"(?:expected scalar type|expected target dtype to be) ([\w ]+?),? but (?:found|got) (\w+)"
    r"|Expected object of (?:scalar )?type ([\w.]+) but (?:got|found) (?:scalar )?type ([\w.]+)"
)
FOUND = re.compile(r"Found dtype (\w+) but expected (\w+)")
LAYER = re.compile(r"Input type \(([\w. :]+)\) and (?:weight|bias) type \(([\w. :]+)\) should be")
KERNEL = re.compile(r"\"(\w+)\" not implemented for '(\w+)'")
CAST = re.compile(r"result type (\w+) can't be cast to the desired output type (\w+)")
ARGUMENT = re.compile(
    r"[Ee]xpected tensor for argument #\d+ '(\w+)' to have (?:one of the following )?scalar types?"
    r":? ([\w, ]+?);? but got (?:\w+\.)*(\w+?)(?:Tensor|Type)? instead"
)
RECURRENT = re.compile(
    r"input dtype \((?:torch\.)?(\w+)\) does not match weight dtype \((?:torch\.)?(\w+)\)"
    r"|input must have the type (?:torch\.)?(\w+), got type (?:torch\.)?(\w+)"
)
INDEX = re.compile(
    r"tensors used as indices must be ([\w, ]+) tensors|Expected dtype (int64) for index"
)
PROBABILITIES = re.compile(
    r"Expected floating point type for target with class probabilities, got (\w+)"
)
UNIFORM = re.compile(
    r"Must flatten tensors with (?:uniform|the same) `?dtype`? but got ([\w.]+) and ([\w.]+)"
)
CLASSES = ("Long", "Long or Byte")
DEVICE = re.compile(r"torch\.(?:cuda\.)?(\w+)Tensor")


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
    hit = match_root(
        run, PROBABILITIES, PAIR, FOUND, LAYER, KERNEL, CAST, ARGUMENT, EXPECTED, INDEX, RECURRENT,
        UNIFORM,
    )  # fmt: skip
    if hit is None or _is_on_two_devices(*hit):
        return
    failure, found = hit
    said, wanted, got = _words(found)
    culprit = (
        _culprit(run, failure) if {"double", "float64"} & {got.lower(), wanted.lower()} else None
    )
    yield explain(run, failure, said, shows="dtype-mismatch", culprit=culprit)


def _is_on_two_devices(failure: Failure, found: re.Match[str]) -> bool:
    if found.re is not LAYER:
        return False
    return ("cuda" in found[1]) != ("cuda" in found[2])


def _words(found: re.Match[str]) -> tuple[str, str, str]:
    """The claim, the type that is wanted and the one that came."""
    if found.re is KERNEL:
        kernel, got = found[1], found[2]
        is_label = "nll_loss" in kernel
        hint = "class labels have to be int64 (Long)" if is_label else _hint("", got)
        return f"Kernel {kernel} does not work on {got} tensors: {hint}", "", got
    if found.re is PROBABILITIES:
        hint = "give class indices of shape (N), or float targets"
        text = (
            f"Targets of the shape of the outputs are taken for probabilities, and are {found[1]}"
        )
        return f"{text}: {hint}", "Float", found[1]
    if found.re is INDEX:
        wanted = found[1] or found[2]
        return f"A tensor is used as an index that is not of type {wanted}", wanted, ""
    if found.re is UNIFORM:
        hint = "a sharded module holds parameters of one type: cast the model before it is wrapped"
        return f"Parameters of {found[1]} and {found[2]} meet: {hint}", found[1], found[2]
    if found.re is CAST:
        hint = "float targets are needed where these are integers" if found[2] == "Long" else ""
        text = f"A {found[1]} result cannot be written to a {found[2]} tensor"
        return f"{text}: {hint}" if hint else text, found[2], found[1]
    if found.re is ARGUMENT:
        return f"Argument {found[1]} is {found[3]}, {found[2]} is wanted", found[2], found[3]
    if found.re is FOUND:
        wanted, got = found[2], found[1]
    elif found.re is EXPECTED:
        wanted, got = found[1] or found[3], found[2] or found[4]
    elif found.re is RECURRENT:
        wanted, got = found[2] or found[3], found[1] or found[4]
    else:
        got, wanted = found[1], found[2]
    wanted, got = (DEVICE.sub(r"\1", name) for name in (wanted, got))
    return f"Two types meet, {got} and {wanted}: {_hint(wanted, got)}", wanted, got


def _hint(wanted: str, got: str) -> str:
    if wanted in CLASSES:
        return "class labels have to be int64 (Long)"
    if {"double", "float64"} & {wanted.lower(), got.lower()}:
        return "float64 is numpy's default, the weights are float32"
    if {"half", "bfloat16", "c10::half", "c10::bfloat16"} & {wanted.lower(), got.lower()}:
        return "half precision meets full precision outside of autocast"
    if got.lower() in {
        "long",
        "int",
        "byte",
        "unsigned char",
        "bool",
        "short",
        "char",
        "long long",
    }:
        return "integers go where real numbers are wanted"
    return "one of the two has to be converted where it is made"


def _culprit(run: Run, failure: Failure) -> Culprit | None:
    """The one place at which float64 from numpy becomes a tensor."""
    site = site_of(run, failure)
    modules = [site.module] if site is not None else []
    modules += [m for m in project_of(run).modules if m not in modules]
    for module in modules:
        made = list(_from_numpy(module))
        if len(made) == 1:
            call = made[0]
            end_line, end = call.end_lineno or call.lineno, call.end_col_offset or 0
            patch = diff(module, Edit(end_line, end, end_line, end, ".float()"))
            says = f"`{ast.unparse(call)}` keeps numpy's float64"
            return Culprit(module, call, says, patch)
    return None


def _from_numpy(module: Module) -> Iterator[ast.Call]:
    for call, name in module.calls():
        above = module.parents.get(call)
        is_cast = isinstance(above, ast.Attribute) and above.attr in ("float", "to", "long", "half")
        is_made = name == "torch.from_numpy" or (
            name in ("torch.tensor", "torch.as_tensor") and "np." in ast.unparse(call)
        )
        is_chosen = argument(call, "dtype", 1) is not None or "float32" in ast.unparse(call)
        if is_made and not is_cast and not is_chosen:
            yield call


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
