from traindx.analysis.program.training.claims import Story, cite, finding, program_of
from traindx.analysis.program.training.freezing import unlisted
from traindx.analysis.program.training.ownership import (
    layers_added,
    parts_held,
    unowned_models,
    written_name,
)
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector

CAUSE = "parameters-not-in-optimizer"


@detector(needs=("source",), suggests=("parameters-not-in-optimizer",))
def check(run: Run) -> Findings:
    """The model is replaced or extended after its optimizer was made, or is not in it at all.

    ## What it detects
    A layer or parameter that takes part in the loss, gets a gradient, and is in no optimizer: its
    model was replaced, or the layer assigned, after the optimizer listed the parameters; it belongs
    to another model; or it belongs to a loss with parameters of its own. Parameters that are
    unfrozen after an optimizer was given only what was not frozen. As a remark, an optimizer
    over one part of a model of which nothing is frozen.

    ## Why it matters
    The optimizer keeps the tensors that it was given. Others are never updated: the loss stays
    where it is, or only part of the model learns, without any error.

    ## What to do
    Make the optimizer after the model has its final form, or use `optimizer.add_param_group`.

    ## When it is wrong
    Moving a model to a device keeps its parameters and is fine. Training only a head while the
    rest stays as it is may be meant; that is only remarked. A layer that is frozen, loaded from a
    file or kept in evaluation mode is left alone, and so is everything where an optimizer gets
    parameters out of sight.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in (*_unowned(story), *_added(story), *_unlisted(story), *_parts(story)):
            if found.location not in seen:
                seen.add(found.location)
                yield found


def _unowned(story: Story) -> Findings:
    for model in unowned_models(story):
        made = model.made
        yield finding(
            f"{model.text} gets gradients and is in no optimizer",
            (model.layer, "these parameters are in no optimizer"),
            (model.backward, "and get gradients here"),
            *([cite(made, "the optimizer is made here, without them")] if made else []),
            at=made or model.layer,
        )


def _added(story: Story) -> Findings:
    """Layers that are assigned to a model whose inside is out of sight, after it was listed."""
    for optimizer, store in layers_added(story):
        yield finding(
            f"`{store.name}` is replaced after the optimizer was made, which holds the old one",
            (store, "the model changes here"),
            (optimizer, "the optimizer was made here, from the old parameters"),
        )


def _unlisted(story: Story) -> Findings:
    """Parameters that are unfrozen when the optimizer has long left them out."""
    for switch, optimizer in unlisted(story):
        yield finding(
            "Parameters are unfrozen, and the optimizer does not hold them",
            (switch.event, "they get gradients from here on"),
            (optimizer, "the optimizer got only what was not frozen then"),
        )


def _parts(story: Story) -> Findings:
    """Optimizers that hold only a part of the model that runs: one tensor is never meant."""
    for held in parts_held(story):
        name = written_name(held.model).strip("`")
        strength = Strength.STRONG if held.tensors == 1 else Strength.MODERATE
        yield finding(
            f"The optimizer holds only {held.text} of `{name}`, and nothing else is frozen",
            (held.optimizer, f"only {held.text} of {name} is passed to the optimizer"),
            strength=strength,
            hint=None if held.tensors == 1 else strength,
        )


_PROGRAM = """
from torchvision import models

model = {model}
{before}
optimizer = torch.optim.SGD({held}, lr=0.1)
{after}
for data, target in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
"""
_MODEL = "nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))"
_USUAL = {"after": "", "held": "model.parameters()", "before": "", "model": _MODEL}
_program = template(_PROGRAM, **_USUAL)
_by_name = template("""
class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.norm, self.out = nn.Embedding(50, 16), nn.LayerNorm(16), nn.Linear(16, 3)
        self.query = nn.Parameter(torch.randn(1, 16))

    def forward(self, x):
        e = self.emb(x)
        return self.out(self.norm(((e @ self.query.t()).softmax(1) * e).sum(1)))

net = Pooled()
named = dict(net.named_parameters())
decay = [p for n, p in named.items() if {decay:}]
plain = [p for n, p in named.items() if n.endswith(".bias") or "norm" in n]
opt = torch.optim.AdamW([{{"params": decay}}, {{"params": plain, "weight_decay": 0.0}}], lr=1e-3)
for x, y in train_loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
""")

_late = template("""
from torchvision import models

model = models.resnet18(weights="DEFAULT")
for p in model.parameters():
    p.requires_grad = False
model.fc = nn.Linear(512, 7)
optimizer = torch.optim.Adam({held})
for epoch in range(20):
    if epoch == 5:
        for p in model.parameters():
            p.requires_grad = True
        {then:pass}
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
""")
_ON = "[p for p in model.parameters() if p.requires_grad]"

FIRES = {
    "unfrozen later": _late(_ON),
    "unfrozen later, filtered": _late("filter(lambda p: p.requires_grad, model.parameters())"),
    "no group is for a parameter of its own": _by_name('n.endswith(".weight") and "norm" not in n'),
    "a new head afterwards": _program("model.fc = nn.Linear(512, 2)"),
    "a new model afterwards": _program("model = nn.Linear(4, 2)"),
    "another model's parameters": _program(before="old = nn.Linear(4, 2)", held="old.parameters()"),
    "one part, a remark": _program(held="model.head.parameters()"),
}

_later = template(_PROGRAM + "{then}", then="", **{**_USUAL, "model": "Net()"})
_SECOND = "model.head = nn.Linear(4, 2)\ntuner = torch.optim.Adam(model.parameters())\n"
_inside = template("""
net, teacher = nn.Linear(4, 2), nn.Linear(4, 2)
criterion = {criterion:Distance(net)}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in loader:
    {reference:}
    loss = criterion(x, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")
_HEADED = """
class Headed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1000)
    def forward(self, x):
        return self.head(self.body(x).relu())
"""
_headed = template(_HEADED + _PROGRAM, **{**_USUAL, "model": "Headed()"})
_BY_RANK = """
found = {n: p for n, p in model.named_parameters()}
found = {n: p for n, p in found.items() if p.requires_grad}
groups = [{'params': [p for n, p in found.items() if p.dim() > 1]},
          {'params': [p for n, p in found.items() if p.dim() < 2], 'weight_decay': 0.0}]
"""

SILENT = {
    "near miss: unfrozen later, all are held": _late("model.parameters()"),
    "near miss: unfrozen and added": _late(
        _ON, 'optimizer.add_param_group({"params": model.layer4.parameters()})'
    ),
    "near miss: unfrozen, and a new optimizer": _late(
        _ON, "optimizer = torch.optim.Adam(model.parameters())"
    ),
    "near miss: every parameter falls into a group": _by_name(
        'not n.endswith(".bias") and "norm" not in n'
    ),
    "near miss: some are picked by name": _by_name('"out" in n'),
    "near miss: a fresh model for the test": _later(
        "model = nn.Linear(4, 2)\nmodel.load_state_dict(best)\n"
    ),
    "near miss: a new head for the next optimizer": _later(
        _SECOND + "fit(model, tuner, optimizer)\n"
    ),
    "near miss: the loss runs the model": _inside(reference="wanted = teacher(x).detach()"),
    "near miss: a teacher without gradients": _inside(
        reference="with torch.no_grad():\n        wanted = teacher(x)", criterion="make_loss()"
    ),
    "near miss: the name is used again for a second model": script("""
teacher = nn.Linear(4, 2)
optimizer = torch.optim.SGD(teacher.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(teacher(x), y).backward()
    optimizer.step()
student = nn.Linear(4, 2)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
"""),
    "near miss: a chain that conditions fill": _program(
        before="for k in kinds:\n"
        "    if k == 'conv':\n        model.add_module(k, nn.Conv2d(3, 8, 3))\n"
        "    else:\n        model.add_module(k, nn.BatchNorm2d(8))",
        model="nn.Sequential()",
    ),
    "a new head before": _program(before="model.fc = nn.Linear(512, 2)"),
    "near miss: a new head of the old one's width": _headed(
        before="model.head = nn.Linear(model.head.in_features, 2)",
        held="[p for p in model.parameters() if p.requires_grad]",
    ),
    "near miss: listed out of its wrapper": _headed(
        before="model = nn.parallel.DistributedDataParallel(model)",
        held="[p for p in model.module.parameters() if p.requires_grad]",
    ),
    "near miss: groups by the rank of each parameter": _headed(before=_BY_RANK, held="groups"),
    "near miss: moved afterwards": _program("model = model.to(device)"),
    "near miss: wrapped afterwards": _program("model = nn.DataParallel(model)"),
    "near miss: a group is added": _program(
        "model.fc = nn.Linear(512, 2)\noptimizer.add_param_group({'params': model.fc.parameters()})"
    ),
    "near miss: the rest is frozen": _program(
        before="model.requires_grad_(False)", held="model.head.parameters()"
    ),
}
