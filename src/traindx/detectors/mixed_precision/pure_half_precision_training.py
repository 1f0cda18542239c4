from traindx.analysis.program.training.claims import each_place, finding, remove_alone, source_text
from traindx.analysis.program.training.lossy_weights import lossy_weights
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector


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
    for found in each_place(run, lossy_weights, lambda found: found.conversion.site.node):
        site, dtype, step = found.conversion.site, found.conversion.dtype, found.step
        is_half = dtype == "float16"
        name = "the framework's AdamW" if step.event.by_framework else step.text
        yield finding(
            f"`{source_text(site)}` makes the weights {dtype}, and {name} updates them without a "
            "float32 copy",
            (site, f"the weights become {dtype} here"),
            (step, "and are updated here"),
            strength=Strength.STRONG if is_half else Strength.MODERATE,
            is_symptom=is_half,
            patch=remove_alone(site),
        )


_TRAINING = """
opt = torch.optim.AdamW({parameters}, lr={rate})
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
{after}
"""
_program = template(
    "net = nn.Linear(4, 2)\n{convert}" + _TRAINING,
    convert="",
    after="",
    parameters="net.parameters()",
    rate="1e-3",
)
_small_steps = template(
    "{build}" + _TRAINING, build="", after="", parameters="net.parameters()", rate="1e-4"
)
_transformers = template("""
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.{dtype:bfloat16})
{after:}
arguments = TrainingArguments("out", learning_rate={rate:1e-5}, bf16=True)
Trainer(model=model, args=arguments, train_dataset=data).train()
""")
_GROUPED = """
net = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)).to(torch.bfloat16)
{after}
decay, plain = [], []
for p in net.parameters():
    (decay if p.dim() > 1 else plain).append(p)
"""


def _groups(after: str = "") -> Run:
    groups = '[{"params": decay}, {"params": plain, "weight_decay": 0.0}]'
    return _small_steps(_GROUPED.format(after=after), parameters=groups)


_BUILDING = """
import contextlib

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

"""


def _default(build: str) -> Run:
    return _small_steps(_BUILDING + build)


FIRES = {
    "made while bfloat16 is the default": _default("with building_in(torch.bfloat16): net = Net()"),
    "made with float16 as the default": _default(
        "torch.set_default_dtype(torch.float16); net = nn.Sequential(nn.Linear(4, 2))"
    ),
    "bfloat16, in groups": _groups(),
    "loaded in bfloat16, with steps that it cannot show": _transformers(),
    "in a class": script("""
class Learner:
    def __init__(self, model):
        self.model = model.half().cuda()
        self.opt = torch.optim.Adam(self.model.parameters())
    def fit(self, dl):
        for x, y in dl:
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()
            self.opt.step()
"""),
    "by a function that builds the model": _small_steps("""
def build(half=True):
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    return net.half() if half else net
net = build().cuda()
"""),
    "half": _program("net.half()"),
    "half on the device": _program("net = net.cuda().half()"),
    "wrapped afterwards": _program(
        "net.half()\nnet = nn.DataParallel(net.cuda())\nnet = torch.compile(net)"
    ),
    "to float16": _program("net.to(torch.float16)"),
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
    "near miss: bfloat16, and the parameters in full precision again": _groups(
        "for p in net.parameters():\n    p.data = p.data.float()"
    ),
    "loaded in float32": _transformers("float32"),
    "near miss: loaded in bfloat16, with adapters": _transformers(
        after="from peft import get_peft_model\nmodel = get_peft_model(model, config)"
    ),
    "near miss: loaded in bfloat16, with large steps": _transformers(rate="1e-3"),
    "bfloat16": _program("net.to(torch.bfloat16)"),
    "near miss: half after training, for inference": _program("", "net.half()"),
    "near miss: adapters are added to it": _program(
        "net = net.half().cuda()\nnet = get_peft_model(net, LoraConfig(r=8))"
    ),
    "near miss: adapters are put into it": _program("net.half()\nadd_lora(net, rank=8)"),
    "near miss: a new head in full precision": _program(
        "net.half()\nnet.requires_grad_(False)\nnet.head = nn.Linear(4, 2)"
    ),
    "near miss: converted again": _program("net.half()\nnet.to(torch.float32)"),
    "near miss: the teacher only": _program("teacher.half()"),
}
