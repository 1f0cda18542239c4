from traindx.analysis.program.training.claims import cite, each_place, finding
from traindx.analysis.program.training.ownership import frozen_whole
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("frozen-parameters",))
def check(run: Run) -> Findings:
    """A model is frozen as a whole and trained afterwards, or frozen at its random weights.

    ## What it detects
    Every parameter that an optimizer holds (or that a framework trains) is switched off by
    `requires_grad`, without a condition, and nothing between that and the training adds a layer,
    replaces the model, or switches a parameter on again. And some tensors of a model, by their
    place in the list, that was just made: nothing was loaded into it, nothing was trained before.

    ## Why it matters
    No frozen parameter gets a gradient: backward raises that nothing requires one, or the model
    learns around layers of random numbers.

    ## What to do
    Freeze only the backbone, after its weights are loaded, or give the model its new head after
    freezing.

    ## When it is wrong
    A function out of sight that gets the model may add trainable parts to it, or load weights; such
    programs are left alone.
    """
    for switch, step in each_place(run, frozen_whole, lambda frozen: frozen[0].event.node):
        names = (switch.model.names if switch.model is not None else set()) - {"self"}
        name = min(sorted(names), key=len, default="the model")
        claim = f"Parameters of `{name}` are frozen at their random initial values"
        second = cite(switch.event, "nothing was loaded or trained before this")
        if step is not None:
            claim = f"All parameters of `{name}` are frozen, and it is trained afterwards"
            second = cite(step, "and nothing is left to update here")
        first = cite(switch.event, "parameters are frozen here")
        yield finding(claim, first, second, at=switch.event)


_PROGRAM = """
from torchvision import models

model = models.resnet18(weights="DEFAULT")
{freeze}
{after}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
"""
_ALL = "for p in model.parameters():\n    p.requires_grad = False"

_program = template(_PROGRAM, freeze=_ALL, after="")

_HEAD = """
model.fc = nn.Linear(512, 10)
for p in model.fc.parameters():
    p.requires_grad = {value}
"""


def _head(value: str) -> Run:
    text = _PROGRAM.format(freeze=_ALL, after=_HEAD.format(value=value))
    return script(text.replace("SGD(model.par", "SGD(model.fc.par"))


_fresh = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())

def freeze(model, count):
    for p in list(model.parameters())[:count]:
        p.requires_grad_(False)

net = Net()
{before:net.load_state_dict(torch.load("a.pt"))}
freeze(net, 2)
optimizer = torch.optim.Adam(net.parameters())
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
""")

_by_name = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.classifier = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.classifier(self.body(x).relu())

net = Net()
for name, p in net.named_parameters():
    {switch}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
""")

_PAIR = """
def switch(nets, on):
    for net in nets:
        for p in net.parameters():
            p.requires_grad = on

made, whole, parts = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
first = torch.optim.Adam(made.parameters())
second = torch.optim.Adam([*whole.parameters(), *parts.parameters()])
{before}
for x, real in loader:
    fake = made(x)
    switch([whole, parts], False)
    first.zero_grad()
    (-whole(fake).mean() - parts(fake).mean()).backward()
    first.step()
    switch({freed}, True)
    second.zero_grad()
    fake = fake.detach()
    (whole(fake) - whole(real) + parts(fake) - parts(real)).mean().backward()
    second.step()
"""
_pair = template(_PAIR, "freed", before="pass")

FIRES = {
    "one of two is never let go": _pair("[whole]"),
    "all but a layer that is not there": _by_name(
        "if not name.startswith('head'):\n        p.requires_grad = False"
    ),
    "all but a layer that is not there, in one line": _by_name("p.requires_grad = 'head' in name"),
    "the first tensors of a model that nothing was loaded into": _fresh(""),
    "all of it": _program(),
    "by the method": _program("model.requires_grad_(False)"),
    "the head that alone is trained": _head("False"),
}

SILENT = {
    "near miss: both are let go": _pair("[whole, parts]"),
    "near miss: one is loaded": _pair("[whole]", "parts.load_state_dict(torch.load('parts.pt'))"),
    "near miss: all but a layer": _by_name(
        "if not name.startswith('classifier'):\n        p.requires_grad = False"
    ),
    "near miss: all but a layer, in one line": _by_name("p.requires_grad = 'classifier' in name"),
    "near miss: weights are loaded first": _fresh(),
    "near miss: weights are loaded out of sight": _fresh("restore(net, path)"),
    "near miss: the head that alone is trained is switched on": _head("True"),
    "nothing frozen": _program(""),
    "near miss: a new head": _program(after="model.fc = nn.Linear(512, 2)"),
    "near miss: adapters are added": _program(after="add_adapters(model)"),
    "near miss: the head is switched on": _program(
        after="for p in model.fc.parameters():\n    p.requires_grad = True"
    ),
}
