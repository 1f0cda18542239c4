"""Tensors on two devices met in one operation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.failures import own_frames
from traindx.model import Failure, Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.devices import model_left_behind, never_moved
from traindx.source.errors import Culprit, explain, make_failed_run, match_root, site_of

TWO = re.compile(
    r"(?:found at least two devices|at least two devices),? ([\w:]+)(?:,| and) ([\w:]+)"
    r"(?:.{0,60}argument for argument (\w+)(?: in method (?:wrapper_)?(\w+))?)?",
    re.DOTALL,
)
NAMED = re.compile(
    r"but got (\w+) is on ([\w:]+), different from other tensors on ([\w:]+)"
    r"(?:.{0,60}in method (?:wrapper_)?(\w+))?"
    r"|on the same device, but got (\w+) on ([\w:]+) and \w+ on ([\w:]+)"
)
TYPES = re.compile(
    r"Input type \((torch\.(?:cuda\.|xpu\.|mps\.)?\w+Tensor|\w+)\) and (?:weight|bias) type "
    r"\((torch\.(?:cuda\.)?\w+Tensor|\w+)\) should be the same"
)
OLD = re.compile(
    r"Expected object of (?:device type|backend) (\w+) but got (?:device type|backend) (\w+) for "
    r"(?:sequence element \d+ in sequence )?argument (#\d+ '\w+')"
)
EXPECTED = re.compile(r"Tensor on device (?:type )?([\w:]+) is not on the expected device ([\w:]+)")
INDICES = re.compile(
    r"indices should be either on (?:the )?(cpu) or on the same device as the indexed tensor "
    r"\((\w+)\)"
)
RECURRENT = re.compile(
    r"Input and (hidden|parameter) tensors are not at the same device, found input tensor at "
    r"([\w:]+) and \w+ tensor at ([\w:]+)"
)
GENERATOR = re.compile(r"Expected a '([\w:]+)' device type for generator but found '([\w:]+)'")
SAME = re.compile(
    r"(?:tensors|parameters and buffers|module must have its parameters).{0,80}on (?:the same "
    r"device|device (cuda:\d+).{0,60}found one of them on device: ([\w:]+))"
)
# a tensor that has a shape and no values: its module was made under the meta device, for a
# checkpoint that never came, or its values stay elsewhere until a hook fetches them
META = re.compile(
    r"Cannot copy out of meta tensor|cannot be called on meta tensors"
    r"|[Tt]ensor on device (?:type )?meta\b|expected device meta\b|convert meta device type tensor"
    r"|tensor at meta\b|'Meta' backend"
)


@detector(needs=("failure",), suggests=("device-mismatch",))
def check(run: Run) -> Iterator[Finding]:
    """An operation gets tensors that are on different devices.

    ## What it detects
    "Expected all tensors to be on the same device", "Input type (torch.FloatTensor) and weight type
    (torch.cuda.FloatTensor) should be the same" and their older forms, with the devices and the
    argument that the message names; also a tensor of the meta device, which has no values. With
    the source: a tensor that `forward` makes without `device=`, a `.to(device)` whose result is
    dropped, labels or a model that nobody moved.

    ## Why it matters
    The traceback shows where the two tensors meet, not where the stray one was made.

    ## What to do
    Make or move the stray tensor once, at its origin.

    ## When it is wrong
    With `device_map` or pipeline stages tensors are on several devices by design; then the layer's
    hook is missing rather than a move.
    """
    hit = match_root(
        run, META, TWO, NAMED, TYPES, OLD, EXPECTED, INDICES, RECURRENT, GENERATOR, SAME
    )
    if hit is None:
        return
    failure, found = hit
    if found.re is META:
        claim = "A tensor is on the meta device: it has a shape, and no values were ever loaded"
        culprit = _made_empty(run)
        yield explain(run, failure, claim, shows="device-mismatch", culprit=culprit)
        return
    if found.re is TYPES and _kind(found[1]) == _kind(found[2]):
        return  # one device, two types: not this fault
    culprit = _culprit(run, failure, found)
    claim = f"Tensors on two devices meet: {_words(found)}"
    yield explain(run, failure, claim, shows="device-mismatch", culprit=culprit)


def _kind(name: str) -> str:
    return name.split(".")[1] if name.count(".") == 2 else ("mkldnn" if "mkldnn" in name else "cpu")


def _words(found: re.Match[str]) -> str:
    if found.re is TWO:
        argument = f"; it was noticed at argument {found[3]}" if found[3] else ""
        method = f" of {found[4].removeprefix('CUDA_').strip('_')}" if found[4] else ""
        return f"{found[1]} and {found[2]}{argument}{method}"
    if found.re is NAMED:
        method = f" of {found[4].removeprefix('CUDA_').strip('_')}" if found[4] else ""
        what, where, others = found.group(1, 2, 3) if found[1] else found.group(5, 6, 7)
        return f"{what}{method} is on {where}, the others on {others}"
    if found.re is TYPES:
        left = "the batch" if _kind(found[1]) == "cpu" else "the model"
        types = f"the input is a {found[1]}, the weights are {found[2]}"
        return f"{types}, so {left} stayed on the CPU"
    if found.re is OLD:
        return f"{found[1]} was expected and argument {found[3]} is on {found[2]}"
    if found.re is EXPECTED:
        return f"a tensor on {found[1]}, where {found[2]} is expected"
    if found.re is INDICES:
        return f"the indices are on the GPU, the indexed tensor on {found[2]}"
    if found.re is RECURRENT:
        return f"the input is on {found[2]}, the {found[1]} tensor on {found[3]}"
    if found.re is GENERATOR:
        return f"a random generator on {found[2]}, where one on {found[1]} is wanted"
    both = [g for g in found.groups() if g]
    return " and ".join(both) or "not all tensors are on the device of the others"


def _made_empty(run: Run) -> Culprit | None:
    """The one place of the source that makes or moves something to the meta device."""
    found = []
    for module in project_of(run).modules:
        for call, name in module.calls():
            given = [*call.args, *(k.value for k in call.keywords)]
            is_named = any(isinstance(a, ast.Constant) and a.value == "meta" for a in given)
            if is_named or name.rsplit(".", 1)[-1] == "init_empty_weights":
                says = f"`{ast.unparse(call)}` makes tensors without values"
                found.append(Culprit(module, module.statement_of(call) or call, says))
    return found[0] if len(found) == 1 else None


def _culprit(run: Run, failure: Failure, found: re.Match[str]) -> Culprit | None:
    project = project_of(run)
    stray_input = found.re is TYPES and _kind(found[1]) == "cpu"
    stray_model = found.re is TYPES and not stray_input
    if not stray_model:
        for culprit in never_moved(project, site_of(run, failure)):
            return culprit
    if not stray_input:
        code = "\n".join(f.code for f in own_frames(failure))
        for culprit in model_left_behind(project, code):
            return culprit
    return None


_ERROR = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, "
    "cuda:0 and cpu!"
)
_MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        noise = torch.randn(x.shape)
        return self.fc(x + noise)
"""

FIRES = {
    "made in forward": make_failed_run(
        _ERROR, "return self.fc(x + noise)", sources={"model.py": _MODEL}
    ),
    "with the argument": make_failed_run(
        _ERROR + " (when checking argument for argument mat1 in method wrapper_CUDA_addmm)"
    ),
    "newer": make_failed_run(
        "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu, "
        "different from other tensors on cuda:0 (when checking argument in method "
        "wrapper_CUDA_addmm)"
    ),
    "older": make_failed_run(
        "RuntimeError: Expected object of device type cuda but got device type cpu for argument #1 "
        "'self' in call to _th_mm"
    ),
    "a recurrent layer": make_failed_run(
        "RuntimeError: Input and hidden tensors are not at the same device, found input tensor at "
        "cuda:0 and hidden tensor at cpu"
    ),
    "a sampler under another default device": make_failed_run(
        "RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'"
    ),
    "made without values": make_failed_run(
        "NotImplementedError: Cannot copy out of meta tensor; no data!",
        "out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)",
        sources={"train.py": "import torch\nwith torch.device('meta'):\n    model = Tagger(9)\n"},
    ),
    "a batch left behind": make_failed_run(
        "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) "
        "should be the same"
    ),
}

SILENT = {
    "near miss: two types on one device": make_failed_run(
        "RuntimeError: Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) "
        "should be the same"
    ),
    "the same code without an error": make_run(sources={"model.py": _MODEL}),
}
