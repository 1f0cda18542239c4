"""The weights that an optimizer updates are half precision."""

from traindx.analysis.program.execution.values import Result, Value
from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.claims import cite, finding, remove_alone, source_text
from traindx.analysis.program.training.ownership import holders, parameters_given
from traindx.analysis.program.training.precision import Conversion, conversion_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.settings import constants_of
from traindx.analysis.program.training.updates import Update, updates
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

# Adam moves a weight by about the learning rate; bfloat16 has eight bits, so that a step of 1e-4 is
# rounded away in every weight above 0.03, which is most of them in layers of usual width
LOST_RATE = 1e-4


@detector(needs=("source",), suggests=("half-precision-weights",))
def check(run: Run) -> Findings:
    """A model is converted to half precision and trained by a plain optimizer.

    ## What it detects
    A model that is converted to float16, loaded in it, or made while it is torch's default, before
    an optimizer of torch's own steps over the parameters of that very model, without a copy in full
    precision. The same with bfloat16 where Adam's learning rate is so small that its updates are
    rounded away.

    ## Why it matters
    Half precision has eleven bits: an update smaller than about 1/2000 of a weight is lost, and
    Adam's epsilon of 1e-8 is zero. The loss stalls early or turns NaN.

    ## What to do
    Keep the weights in float32 and use `torch.autocast` with a gradient scaler, or bfloat16 with an
    optimizer that rounds stochastically.

    ## When it is wrong
    A frozen half-precision base under trainable adapters in full precision is fine. Hence a model
    is left alone that is made anew from the converted one, given new layers, converted again, or
    handed to something out of sight before the optimizer is made.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for update in updates(story):
            for model in _models(update):
                found = conversion_of(story, model, update.step.event)
                if found is None or found.is_mixed or not _is_lossy(story, found, update):
                    continue
                if found.site.node not in seen:
                    seen.add(found.site.node)
                    yield _finding(found, update.step)


def _is_lossy(story: Story, found: Conversion, update: Update) -> bool:
    """Tell whether the updates are smaller than what the weights can show."""
    if found.dtype == "float16":
        return True
    optimizer = update.optimizer
    if found.dtype != "bfloat16" or not isinstance(optimizer, Result):
        return False
    rate = optimizer.kwargs.get("lr") or next(iter(optimizer.args[1:2]), None)
    rates = [r for r in constants_of(story, rate) if isinstance(r, float)]
    return "Adam" in optimizer.maker and bool(rates) and max(rates) <= LOST_RATE


def _models(update: Update) -> list[Value]:
    """The models whose parameters an optimizer of torch holds, in whatever groups."""
    optimizer = update.optimizer
    if not isinstance(optimizer, Result) or not optimizer.maker.startswith("torch.optim."):
        return []
    return [model for model, _ in holders(parameters_given(optimizer))]


def _finding(found: Conversion, step: Deed) -> Finding:
    text, is_half = source_text(found.site), found.dtype == "float16"
    name = step.text if not step.event.by_framework else "the framework's AdamW"
    return finding(
        f"`{text}` makes the weights {found.dtype}, and {name} updates them as they are",
        "half-precision-weights",
        found.site,
        cite(found.site, f"the weights become {found.dtype} here"),
        cite(step, "and are updated here"),
        strength=Strength.STRONG if is_half else Strength.MODERATE,
        is_symptom=is_half,
        patch=remove_alone(found.site),
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(4, 2)
{convert}
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for data, target in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
{after}
"""


def _program(convert: str, after: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(convert=convert, after=after)})


_BUILT = """
import torch
from torch import nn
def build(half=True):
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    return net.half() if half else net
net = build().cuda()
opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x.half()), y).backward()
    opt.step()
"""

_LEARNER = """
import torch
from torch import nn
class Learner:
    def __init__(self, model):
        self.model = model.half().cuda()
        self.opt = torch.optim.Adam(self.model.parameters())
    def fit(self, dl):
        for x, y in dl:
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()
            self.opt.step()
"""

_TRANSFORMERS = """
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
{more}
model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.{dtype})
{after}
arguments = TrainingArguments("out", learning_rate={rate}, bf16=True)
Trainer(model=model, args=arguments, train_dataset=data).train()
"""


def _transformers(dtype: str = "bfloat16", rate: str = "1e-5", after: str = "") -> Run:
    more = "from peft import get_peft_model" if "peft" in after else ""
    text = _TRANSFORMERS.format(dtype=dtype, rate=rate, after=after, more=more)
    return make_run(sources={"train.py": text})


_GROUPS = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)).to(torch.bfloat16)
{after}
decay, plain = [], []
for p in model.parameters():
    (decay if p.dim() > 1 else plain).append(p)
opt = torch.optim.AdamW([{{"params": decay}}, {{"params": plain, "weight_decay": 0.0}}], lr=1e-4)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(model(x.bfloat16()).float(), y).backward()
    opt.step()
"""

_DEFAULT = """
import contextlib
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(x)

@contextlib.contextmanager
def building_in(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    yield
    torch.set_default_dtype(before)

{build}
opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
"""


def _default(build: str) -> Run:
    return make_run(sources={"train.py": _DEFAULT.format(build=build)})


FIRES = {
    "made while bfloat16 is the default": _default("with building_in(torch.bfloat16): net = Net()"),
    "made with float16 as the default": _default(
        "torch.set_default_dtype(torch.float16); net = nn.Sequential(nn.Linear(4, 2))"
    ),
    "bfloat16, in groups": make_run(sources={"train.py": _GROUPS.format(after="")}),
    "loaded in bfloat16, with steps that it cannot show": _transformers(),
    "in a class": make_run(sources={"train.py": _LEARNER}),
    "by a function that builds the model": make_run(sources={"train.py": _BUILT}),
    "half": _program("model.half()"),
    "half on the device": _program("model = model.cuda().half()"),
    "wrapped afterwards": _program(
        "model.half()\nmodel = nn.DataParallel(model.cuda())\nmodel = torch.compile(model)"
    ),
    "to float16": _program("model.to(torch.float16)"),
}

SILENT = {
    "near miss: made when the default is back": _default(
        "with building_in(torch.bfloat16): pass\nnet = Net()"
    ),
    "near miss: doubles by default": _default("with building_in(torch.float64): net = Net()"),
    "near miss: made in bfloat16 and converted": _default(
        "with building_in(torch.bfloat16): net = Net()\nnet.float()"
    ),
    "near miss: a default that is an option": _default(
        "torch.set_default_dtype(args.dtype); net = Net()"
    ),
    "near miss: bfloat16, and the parameters in full precision again": make_run(
        sources={
            "train.py": _GROUPS.format(
                after="for p in model.parameters():\n    p.data = p.data.float()"
            )
        }
    ),
    "loaded in float32": _transformers("float32"),
    "near miss: loaded in bfloat16, with adapters": _transformers(
        after="model = get_peft_model(model, config)"
    ),
    "near miss: loaded in bfloat16, with large steps": _transformers(rate="1e-3"),
    "bfloat16": _program("model.to(torch.bfloat16)"),
    "near miss: half after training, for inference": _program("", "model.half()"),
    "near miss: adapters are added to it": _program(
        "model = model.half().cuda()\nmodel = get_peft_model(model, LoraConfig(r=8))"
    ),
    "near miss: adapters are put into it": _program("model.half()\nadd_lora(model, rank=8)"),
    "near miss: a new head in full precision": _program(
        "model.half()\nmodel.requires_grad_(False)\nmodel.head = nn.Linear(4, 2)"
    ),
    "near miss: converted again": _program("model.half()\nmodel.to(torch.float32)"),
    "near miss: the teacher only": _program("teacher.half()"),
}
