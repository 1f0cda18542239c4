"""A forward pass mixes a tensor that stays on the CPU with its input."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Instance, Items, Result, Value
from traindx.analysis.program.training.claims import (
    add_argument,
    cite,
    first_parameter,
    source_text,
)
from traindx.analysis.program.training.flow import inside
from traindx.analysis.program.training.layers import assigned, is_layer, is_module, registered
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.analysis.program.training.tensors import (
    comes_from,
    is_left_in_place,
    left_in_place,
    made_without_device,
    may_be_accelerator,
)
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

CAUSE = "device-mismatch"
GLOBAL = frozenset({"torch.set_default_device", "torch.set_default_tensor_type"})
# contexts that leave the default device as it is
NEUTRAL = (
    "no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "autocast", "record_function",
    "detect_anomaly", "sdpa_kernel",
)  # fmt: skip
MEETS = frozenset(
    {"add", "sub", "mul", "div", "pow", "matmul", "cat", "stack", "where", "lt", "le", "gt", "ge",
     "eq", "ne", "and", "or", "masked_fill", "maximum", "minimum", "einsum", "addmm"}
)  # fmt: skip


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A tensor that is made without a device meets the input of a model.

    ## What it detects
    `torch.zeros(…)`, `torch.arange(…)` and their kin without a device, made in a forward pass or
    kept as a plain attribute of a module, and later in arithmetic, a comparison or a concatenation
    with what comes from the input, in a program that trains on another device.

    ## Why it matters
    The tensor is made on the CPU while the input is on the GPU: the operation fails there, and
    works on every machine without one. A plain attribute does not move with its module.

    ## What to do
    Make it where the input is: `torch.zeros(…, device=x.device)`, or register it as a buffer.

    ## When it is wrong
    A single number on the CPU mixes with tensors anywhere, and so does an index; both are left
    alone. So is what is made inside `with torch.device(…)`, or while another context is open that
    may set the device.
    """
    program = program_of(run)
    events = [e for s in program.stories for e in s.events]
    if any(e.name in GLOBAL for e in events):
        return
    moved = [e for e in events if e.name in (".to", ".cuda") and may_be_accelerator(e)]
    seen: set[object] = set()
    for story in program.stories if moved else ():
        for event in story.events:
            if event.node in seen or not made_without_device(event) or not _is_default(event):
                continue
            is_kept = _is_attribute(program, story, event, moved)
            meeting = _meeting(story, event) if event.within or is_kept else None
            if meeting is not None:
                seen.add(event.node)
                yield _finding(event, meeting, is_kept=is_kept)


def _is_default(event: ProgramEvent) -> bool:
    """Tell whether nothing around an event may say where tensors are made."""
    makers = (c.maker if isinstance(c, Result) else "?" for c in event.contexts)
    return all(m.endswith(NEUTRAL) for m in makers)


def _is_attribute(
    program: Program, story: Story, event: ProgramEvent, moved: list[ProgramEvent]
) -> bool:
    """Tell whether a tensor, or what is computed from it, is an attribute of a model that moves."""
    if event.within or event.result is None:
        return False
    after = {id(v) for v in left_in_place(story, event.result)}
    owners = [a.model for a in assigned(story.events) if id(a.value) in after]
    return any(
        part is owner
        for owner in owners
        if not any({"to", "_apply", "cuda"} & cls.methods for cls in owner.cls.lineage())
        for e in moved
        if e.receiver is not None and is_module(e.receiver)
        for part in registered(e.receiver)
    )


def _meeting(story: Story, made: ProgramEvent) -> Value | None:
    """Return where a tensor meets what comes from the inputs of a forward pass."""
    sources = [
        value
        for e in story.events
        if e.is_own and e.name in ("forward", "__call__") and isinstance(e.receiver, Instance)
        if is_module(e.receiver)
        for value in (*e.args, *e.kwargs.values())
    ]
    pending: list[Value] = [] if made.result is None else [made.result]
    seen = {id(v) for v in pending}
    while pending:
        value = pending.pop()
        for user in story.flow.users(value):
            operation = operation_of(user)
            if id(user) in seen or not is_left_in_place(user):
                continue
            seen.add(id(user))
            if operation is None or (operation.name == "getitem" and user.inputs[0] is not value):
                if not isinstance(user, Result):
                    pending.append(user)
                continue
            held = (v for o in operation.operands for v in inside(o))
            others = [v for v in held if not isinstance(v, Items) and id(v) not in seen]
            if operation.name in MEETS and any(comes_from(v, sources) for v in others):
                return user
            if not is_layer(getattr(user, "receiver", None)):
                pending.append(user)
    return None


def _finding(event: ProgramEvent, meeting: Value, *, is_kept: bool) -> Finding:
    given = first_parameter(event)
    strength = Strength.STRONG if is_kept else Strength.MODERATE
    patch = add_argument(event, f"device={given}.device") if given and not is_kept else None
    where = "made without a device, as a plain attribute" if is_kept else "made without a device"
    met = () if meeting.site is None else (cite(meeting, "meets what comes from the input here"),)
    return Finding(
        claim=f"`{source_text(event)}` is made on the CPU whatever the input is on",
        strength=strength,
        evidence=(cite(event, where), *met),
        suggests={CAUSE: strength},
        shows=CAUSE if is_kept else None,
        is_symptom=is_kept,
        location=event.location,
        patch=patch,
    )


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


_SCHEDULE = """
import torch
from torch import nn

class Noiser(nn.Module):
    def __init__(self):
        super().__init__()
        {keep}

    def forward(self, x):
        return self.scale(x)

    def scale(self, x):
        return x * self.betas

model = Noiser().to("cuda")
out = model(batch)
"""

_GRAPH = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.out = nn.Linear(8, classes)

    def forward(self, x):
        return self.out(x)

features, labels = torch.rand(10, 8), torch.LongTensor(rows)
model = Net(labels.max().item() + 1)
if torch.cuda.is_available():
    model.cuda()
    features, labels = features.cuda(), labels.cuda()
right = (model(features).argmax(1) == labels).sum()
"""

FIRES = {
    "kept as a plain attribute": make_run(
        sources={"net.py": _SCHEDULE.format(keep="self.betas = 1 - torch.linspace(0, 1, 8)")}
    ),
    "noise is added": _module("x = x + torch.randn(x.size(0), 4)"),
    "noise is added under no_grad": _module(
        "with torch.no_grad():", "    x = x + torch.randn(x.size(0), 4)"
    ),
    "zeros are appended": _module("pad = torch.zeros(x.size(0), 2)", "x = torch.cat([x, pad], 1)"),
}

SILENT = {
    "near miss: kept as a parameter": make_run(
        sources={"net.py": _SCHEDULE.format(keep="self.betas = nn.Parameter(torch.Tensor(8))")}
    ),
    "near miss: moved if there is a GPU, and its size is kept": make_run(
        sources={"train.py": _GRAPH}
    ),
    "near miss: kept as a buffer": make_run(
        sources={"net.py": _SCHEDULE.format(keep='self.register_buffer("betas", torch.ones(8))')}
    ),
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
    "near miss: a size by a function out of sight": _module(
        "from torchvision.transforms.functional import get_dimensions",
        "_, height, width = get_dimensions(x)",
        "x = x[: int((torch.rand(2) * width)[0])]",
    ),
    "near miss: made by the type that fits the input": _module(
        "Kind = torch.cuda.FloatTensor if x.is_cuda else torch.FloatTensor",
        "x = x + Kind(noise)",
    ),
    "near miss: given to a function that may move it": _module(
        "from moving import placed", "x = x + placed(torch.zeros(4), self.gpu)"
    ),
    "near miss: moved where the input is on a GPU": _module(
        "pad = torch.zeros(4)", "if x.is_cuda:", "    pad = pad.cuda()", "x = x + pad"
    ),
    "moved later": _module("pad = torch.zeros(4)", "pad = pad.to(x.device)", "x = x + pad"),
}
