"""A forward pass makes a tensor on the CPU whatever its input is on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.devices import Made, made_on_cpu, with_device
from traindx.source.inputs import holds, values_from_inputs
from traindx.source.module import Function, Module, key_of
from traindx.source.project import Project

USES_DEVICE = (".cuda(", ".to(device", ".to(self.device", '"cuda"', "'cuda'")
GLOBAL = ("set_default_device", "set_default_tensor_type")
# contexts that leave the default device as it is
NEUTRAL = (
    "no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "autocast", "record_function",
    "detect_anomaly", "sdpa_kernel",
)  # fmt: skip
MOVES = ("to", "cuda", "type_as", "cpu")


@detector(needs=("source",), suggests=("device-mismatch",))
def check(run: Run) -> Iterator[Finding]:
    """A module's forward makes a tensor without a device and mixes it with its input.

    ## What it detects
    `torch.zeros(…)`, `torch.arange(…)` and their kin in a module's `forward`, without a device, in
    arithmetic or a concatenation with something else, in a program that trains on another device.

    ## Why it matters
    The tensor is made on the CPU while the input is on the GPU: the operation fails there, and
    works on every machine without one.

    ## What to do
    Make it where the input is: `torch.zeros(…, device=x.device)`, or register it as a buffer.

    ## When it is wrong
    A single number on the CPU mixes with tensors anywhere, and so does an index; both are left
    alone. So is what is made inside `with torch.device(…)`, or while another context is open that
    may set the device.
    """
    project = project_of(run)
    if _is_set_globally(project):
        return
    for module in project.training_modules:
        if not any(w in module.text for w in USES_DEVICE):
            continue
        for cls in module.nodes(ast.ClassDef):
            forward = module.functions.get(f"{module.dotted(cls)}.forward")
            if forward is None or not project.is_module(module, cls):
                continue
            for made in made_on_cpu(module, forward):
                is_placed = _is_under_device(module, forward, made.call)
                if not is_placed and _mixes(module, forward, made):
                    yield _finding(module, forward, made)


def _finding(module: Module, forward: Function, made: Made) -> Finding:
    inputs = [a.arg for a in forward.args.args[1:]]
    patch = with_device(module, made, inputs[0]) if inputs else None
    return Finding(
        claim=f"`{module.source(made.call)}` is made on the CPU whatever the input is on",
        strength=Strength.MODERATE,
        evidence=(module.cite(made.call, "made without a device, and mixed with other tensors"),),
        suggests={"device-mismatch": Strength.MODERATE},
        location=module.location(made.statement),
        patch=patch,
    )


def _is_set_globally(project: Project) -> bool:
    """Tell whether any file sets the device that tensors are made on."""
    return any(w in m.text for m in project.modules for w in GLOBAL)


def _is_under_device(module: Module, forward: Function, call: ast.Call) -> bool:
    """Tell whether a `with` around the call, or a decorator, may say where tensors are made."""
    around = (n for n in module.enclosing(call) if isinstance(n, (ast.With, ast.AsyncWith)))
    contexts = [i.context_expr for block in around for i in block.items]
    names = [_called(module, c) for c in contexts]
    decorators = [_called(module, d) for d in forward.decorator_list]
    return not all(n.endswith(NEUTRAL) for n in names) or "torch.device" in decorators


def _called(module: Module, node: ast.expr) -> str:
    return module.qualified(node.func if isinstance(node, ast.Call) else node) or ""


def _mixes(module: Module, forward: Function, made: Made) -> bool:
    """Tell whether the tensor meets others in arithmetic or in a call of torch."""
    call = made.call
    name = (module.qualified(call.func) or "").rsplit(".", 1)[-1]
    if name in ("tensor", "as_tensor") or not call.args:
        return False
    if isinstance(made.statement, ast.Assign) and made.statement.value is call:
        return _name_mixes(module, forward, made.name)
    above = module.parents.get(call)
    is_index = any(isinstance(n, ast.Subscript) for n in module.enclosing(call))
    if not isinstance(above, ast.BinOp) or is_index:
        return False
    return not _is_number(forward, above.left if above.right is call else above.right)


def _name_mixes(module: Module, forward: Function, name: str) -> bool:
    has_met = False
    for node in ast.walk(forward):
        if isinstance(node, ast.Attribute) and key_of(node.value) == name and node.attr in MOVES:
            return False
        if isinstance(node, ast.BinOp):
            has_met |= name in (key_of(node.left), key_of(node.right)) and not _is_number(
                forward, node.left if key_of(node.right) == name else node.right
            )
        is_cat = isinstance(node, ast.Call) and (module.qualified(node.func) or "") in (
            "torch.cat",
            "torch.stack",
            "torch.matmul",
        )
        if is_cat:
            has_met |= any(key_of(n) == name for n in ast.walk(node))
    return has_met and bool(name)


def _is_number(forward: Function, node: ast.expr) -> bool:
    """Tell whether an operand may be a number: nothing in it comes from the inputs."""
    return not holds(node, values_from_inputs(forward))


_MODULE = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        {body}
        return x

model = Net().cuda()
"""


def _module(*body: str) -> Run:
    return make_run(sources={"net.py": _MODULE.format(body="\n        ".join(body))})


FIRES = {
    "noise is added": _module("x = x + torch.randn(x.size(0), 4)"),
    "noise is added under no_grad": _module(
        "with torch.no_grad():", "    x = x + torch.randn(x.size(0), 4)"
    ),
    "zeros are appended": _module("pad = torch.zeros(x.size(0), 2)", "x = torch.cat([x, pad], 1)"),
}

SILENT = {
    "made where the input is": _module("x = x + torch.randn(4, device=x.device)"),
    "near miss: made under a device": _module(
        "with torch.device(x.device):", "    noise = torch.randn(4)", "x = x + noise"
    ),
    "near miss: the default device is set elsewhere": make_run(
        sources={
            "net.py": _MODULE.format(body="x = x + torch.randn(4)"),
            "train.py": "import torch\ntorch.set_default_device('cuda')\n",
        }
    ),
    "near miss: made in a context out of sight": _module(
        "with on(x):", "    noise = torch.randn(4)", "x = x + noise"
    ),
    "near miss: made like the input": _module("x = x + torch.randn_like(x)"),
    "near miss: an index, shifted": _module("n = len(x)", "x = x[torch.arange(n) + n]"),
    "near miss: a number": _module("mask = (torch.rand(4) + self.keep).floor()"),
    "near miss: an index": _module("order = torch.randperm(4)", "x = x[:, order]"),
    "moved later": _module("pad = torch.zeros(4)", "pad = pad.to(x.device)", "x = x + pad"),
}
