from dataclasses import replace

from traindx.analysis.program.training.claims import (
    add_argument,
    cited,
    each_place,
    finding,
    first_parameter,
    source_text,
)
from traindx.analysis.program.training.cpu_tensors import cpu_tensors
from traindx.examples import make_run, script
from traindx.registry import Findings, Run, Strength, detector

CAUSE = "device-mismatch"


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
    for tensor in each_place(run, cpu_tensors, lambda t: t.made.node):
        made, given = tensor.made, "" if tensor.is_kept else first_parameter(tensor.made)
        where = ", as a plain attribute" if tensor.is_kept else ""
        strength = Strength.STRONG if tensor.is_kept else Strength.MODERATE
        found = finding(
            f"`{source_text(made)}` is made on the CPU whatever the input is on",
            (made, f"made without a device{where}"),
            *cited(tensor.meeting, "meets what comes from the input here"),
            strength=strength,
            hint=None if tensor.is_kept else strength,
            is_symptom=tensor.is_kept,
            patch=add_argument(made, f"device={given}.device") if given else None,
        )
        yield replace(found, suggests={CAUSE: strength})


_MODULE = """
class Net(nn.Module):
    def forward(self, x):
        {body}
        return x

model = Net().cuda()
"""


def _module(*body: str) -> Run:
    return script(_MODULE, path="net.py", body="\n        ".join(body))


_SCHEDULE = """
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

FIRES = {
    "kept as a plain attribute": script(
        _SCHEDULE, path="net.py", keep="self.betas = 1 - torch.linspace(0, 1, 8)"
    ),
    "noise is added": _module("x = x + torch.randn(x.size(0), 4)"),
    "noise is added under no_grad": _module(
        "with torch.no_grad():", "    x = x + torch.randn(x.size(0), 4)"
    ),
    "zeros are appended": _module("pad = torch.zeros(x.size(0), 2)", "x = torch.cat([x, pad], 1)"),
}

SILENT = {
    "near miss: kept as a parameter": script(
        _SCHEDULE, path="net.py", keep="self.betas = nn.Parameter(torch.Tensor(8))"
    ),
    "near miss: moved if there is a GPU, and its size is kept": script("""
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
"""),
    "near miss: kept as a buffer": script(
        _SCHEDULE, path="net.py", keep='self.register_buffer("betas", torch.ones(8))'
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
