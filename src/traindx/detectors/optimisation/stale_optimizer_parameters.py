"""The optimizer holds other parameters than those that are trained."""

from dataclasses import replace

from traindx.analysis.program.execution.library import modules_in
from traindx.analysis.program.execution.values import Instance, Result, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.freezing import unlisted
from traindx.analysis.program.training.ownership import (
    layers_added,
    learning_layers,
    optimizers_of,
    parts_held,
    unowned_layers,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Strength
from traindx.registry import Findings, Run, detector

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
    """One finding for each model of which layers learn in vain."""
    reported: list[Value] = []
    missing = unowned_layers(story)
    for backward, layer in missing:
        owner = _model_of(story, layer)
        if layer.site is None or any(owner is r for r in reported):
            continue
        reported.append(owner)
        what = _name(layer) if owner is layer else f"{_name(layer)} of {_name(owner)}"
        if owner is not layer and _is_wholly_unowned(story, backward, owner, missing):
            what = _name(owner)
        made = next((o for o in optimizers_of(story) if o.site is not None), None)
        yield finding(
            f"{what} gets gradients and is in no optimizer",
            CAUSE,
            made or layer,
            cite(layer, "these parameters are in no optimizer"),
            cite(backward, "and get gradients here"),
            *([cite(made, "the optimizer is made here, without them")] if made else []),
            is_symptom=True,
        )


def _is_wholly_unowned(
    story: Story, backward: Deed, owner: Value, missing: list[tuple[Deed, Value]]
) -> bool:
    """Tell whether no layer of a model that learns is in an optimizer."""
    learning = [x for x in learning_layers(backward) if _model_of(story, x) is owner]
    return all(any(x is m for _, m in missing) for x in learning)


def _model_of(story: Story, layer: Value) -> Value:
    """The outermost model that a layer is part of, by what runs."""
    for deed in story.does(Do.FORWARD):
        model = None if deed.event.within else deed.subject
        if model is not None and any(part is layer for part in modules_in(model)):
            return model
    return layer


def _name(value: Value) -> str:
    names = value.names - {"self"}
    if names:
        return f"`{min(sorted(names), key=len)}`"
    if isinstance(value, Instance):
        return f"`{value.cls.node.name}`"
    return f"`{value.maker.rsplit('.', 1)[-1]}`" if isinstance(value, Result) else "A model"


def _added(story: Story) -> Findings:
    """Layers that are assigned to a model whose inside is out of sight, after it was listed."""
    for optimizer, store in layers_added(story):
        yield finding(
            f"`{store.name}` is replaced after the optimizer was made, which holds the old one",
            CAUSE,
            store,
            cite(store, "the model changes here"),
            cite(optimizer, "the optimizer was made here, from the old parameters"),
            is_symptom=True,
        )


def _unlisted(story: Story) -> Findings:
    """Parameters that are unfrozen when the optimizer has long left them out."""
    for switch, optimizer in unlisted(story):
        yield finding(
            "Parameters are unfrozen, and the optimizer does not hold them",
            CAUSE,
            switch.event,
            cite(switch.event, "they get gradients from here on"),
            cite(optimizer, "the optimizer was given only what was not frozen then"),
            is_symptom=True,
        )


def _parts(story: Story) -> Findings:
    """Optimizers that hold only a part of the model that runs: one tensor is never meant."""
    for held in parts_held(story):
        name = _name(held.model).strip("`")
        found = finding(
            f"The optimizer holds only {held.text} of `{name}`, and nothing else is frozen",
            CAUSE,
            held.optimizer,
            cite(held.optimizer, f"only {held.text} of {name} is given to the optimizer"),
            is_symptom=True,
        )
        remark = {CAUSE: Strength.MODERATE}
        if held.tensors != 1:
            found = replace(found, shows=None, strength=Strength.MODERATE, suggests=remark)
        yield found


_PROGRAM = """
import torch
from torch import nn
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


def _program(
    after: str = "", held: str = "model.parameters()", before: str = "", model: str = ""
) -> Run:
    model = model or "nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))"
    text = _PROGRAM.format(after=after, held=held, before=before, model=model)
    return make_run(sources={"train.py": text})


_BY_NAME = """
import torch
from torch import nn

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
decay = [p for n, p in named.items() if {decay}]
plain = [p for n, p in named.items() if n.endswith(".bias") or "norm" in n]
opt = torch.optim.AdamW([{{"params": decay}}, {{"params": plain, "weight_decay": 0.0}}], lr=1e-3)
for x, y in train_loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
"""


def _by_name(decay: str) -> Run:
    return make_run(sources={"train.py": _BY_NAME.format(decay=decay)})


_LATE = """
import torch
from torch import nn
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
        {then}
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
_ON = "[p for p in model.parameters() if p.requires_grad]"


def _late(held: str, then: str = "pass") -> Run:
    return make_run(sources={"train.py": _LATE.format(held=held, then=then)})


FIRES = {
    "unfrozen later": _late(_ON),
    "unfrozen later, filtered": _late("filter(lambda p: p.requires_grad, model.parameters())"),
    "no group is for a parameter of its own": _by_name('n.endswith(".weight") and "norm" not in n'),
    "a new head afterwards": _program("model.fc = nn.Linear(512, 2)"),
    "a new model afterwards": _program("model = nn.Linear(4, 2)"),
    "another model's parameters": _program(before="old = nn.Linear(4, 2)", held="old.parameters()"),
    "one part, a remark": _program(held="model.head.parameters()"),
}

_TEACHER_FIRST = """
import torch
from torch import nn
teacher = nn.Linear(4, 2)
optimizer = torch.optim.SGD(teacher.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(teacher(x), y).backward()
    optimizer.step()
student = nn.Linear(4, 2)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
"""

_LATER = _PROGRAM.format(model="Net()", before="", held="model.parameters()", after="")
_SECOND = "model.head = nn.Linear(4, 2)\ntuner = torch.optim.Adam(model.parameters())\n"
_INSIDE = """
import torch
from torch import nn
net, teacher = nn.Linear(4, 2), nn.Linear(4, 2)
criterion = Distance(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in loader:
    {reference}
    loss = criterion(x, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

_HEADED = """
from torch import nn
class Headed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1000)
    def forward(self, x):
        return self.head(self.body(x).relu())
"""

_BY_RANK = _PROGRAM.format(
    model="Headed()",
    before="found = {n: p for n, p in model.named_parameters()}\n"
    "found = {n: p for n, p in found.items() if p.requires_grad}\n"
    "groups = [{'params': [p for n, p in found.items() if p.dim() > 1]},\n"
    "          {'params': [p for n, p in found.items() if p.dim() < 2], 'weight_decay': 0.0}]",
    held="groups",
    after="",
)

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
    "near miss: a fresh model for the test": make_run(
        sources={"train.py": _LATER + "model = nn.Linear(4, 2)\nmodel.load_state_dict(best)\n"}
    ),
    "near miss: a new head for the next optimizer": make_run(
        sources={"train.py": _LATER + _SECOND + "fit(model, tuner, optimizer)\n"}
    ),
    "near miss: the loss runs the model": make_run(
        sources={"train.py": _INSIDE.format(reference="wanted = teacher(x).detach()")}
    ),
    "near miss: a teacher without gradients": make_run(
        sources={
            "train.py": _INSIDE.format(
                reference="with torch.no_grad():\n        wanted = teacher(x)"
            ).replace("Distance(net)", "make_loss()")
        }
    ),
    "near miss: the name is used again for a second model": make_run(
        sources={"train.py": _TEACHER_FIRST}
    ),
    "near miss: a chain that conditions fill": _program(
        before="for k in kinds:\n"
        "    if k == 'conv':\n        model.add_module(k, nn.Conv2d(3, 8, 3))\n"
        "    else:\n        model.add_module(k, nn.BatchNorm2d(8))",
        model="nn.Sequential()",
    ),
    "a new head before": _program(before="model.fc = nn.Linear(512, 2)"),
    "near miss: a new head of the old one's width": make_run(
        sources={
            "train.py": _HEADED
            + _PROGRAM.format(
                model="Headed()",
                before="model.head = nn.Linear(model.head.in_features, 2)",
                held="[p for p in model.parameters() if p.requires_grad]",
                after="",
            )
        }
    ),
    "near miss: listed out of its wrapper": make_run(
        sources={
            "train.py": _HEADED
            + _PROGRAM.format(
                model="Headed()",
                before="model = nn.parallel.DistributedDataParallel(model)",
                held="[p for p in model.module.parameters() if p.requires_grad]",
                after="",
            )
        }
    ),
    "near miss: groups by the rank of each parameter": make_run(
        sources={"train.py": _HEADED + _BY_RANK}
    ),
    "near miss: moved afterwards": _program("model = model.to(device)"),
    "near miss: wrapped afterwards": _program("model = nn.DataParallel(model)"),
    "near miss: a group is added": _program(
        "model.fc = nn.Linear(512, 2)\noptimizer.add_param_group({'params': model.fc.parameters()})"
    ),
    "near miss: the rest is frozen": _program(
        before="model.requires_grad_(False)", held="model.head.parameters()"
    ),
}
