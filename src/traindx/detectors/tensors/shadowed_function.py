from traindx.analysis.program.training.claims import callee_text, finding, name_apart, shown
from traindx.analysis.program.training.modes import overwritten_modes
from traindx.analysis.program.training.program import each_place
from traindx.analysis.program.training.shadowed_names import (
    HiddenRole,
    ShadowedName,
    shadowed_names,
)
from traindx.examples import script, template
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("name-shadowed",))
def check(run: Run) -> Findings:
    """A name that is called, or used as a library, holds a result instead.

    ## What it detects
    `loss = loss(output, target)` or `model = model(x)`, followed by another call of that name, as
    in a loop; a built-in such as `len` that holds a plain value and is called; and a library's name
    such as `F` that is bound to a size of a tensor and used as the library afterwards. An attribute
    `self.training` of a module that holds settings, which `train()` and `eval()` overwrite; and an
    attribute such as `self.parameters` that holds a list or dict and is called.

    ## Why it matters
    The first iteration works. The second calls a tensor: `'Tensor' object is not callable`.

    ## What to do
    Give the function and its result two names: `loss_fn` and `loss`.

    ## When it is wrong
    A name that is bound anew at the top of every iteration is right, and left alone.
    """
    for shadowed in each_place(run, shadowed_names, at=lambda s: s.place):
        yield SENTENCES[shadowed.role](shadowed)
    for kept, deed in each_place(run, overwritten_modes, at=lambda pair: pair[0].event.node):
        yield finding(
            "self.training keeps settings, and train() and eval() write True or False there",
            (kept.event, "kept under the name of the flag"),
            (deed.event, "overwrites it with True or False"),
        )


def _replaced(found: ShadowedName) -> Finding:
    made = found.made or found.event
    how = f"`{found.name}` is a {found.role.value} and is replaced by its own result"
    return finding(
        f"{how} inside a loop" if made.node is found.event.node else how,
        (made, "the result takes the name here; the next call fails"),
        (found.event, f"{found.name} is called again here"),
        patch=name_apart(made) if found.role is HiddenRole.LOSS else None,
    )


def _built_in(found: ShadowedName) -> Finding:
    at = shown(found.value, found.event)
    return finding(
        f"The built-in `{found.name}` is bound to a value and called afterwards",
        (at, f"{found.name} becomes a value here"),
        (found.event, "and is called here"),
    )


def _function(found: ShadowedName) -> Finding:
    kind = found.noun
    return finding(
        f"`{found.name}` is a {kind} here and hides the {found.role.value}: the call fails",
        (found.event, f"{found.name} holds a {kind}, which cannot be called"),
    )


def _library(found: ShadowedName) -> Finding:
    library, root = found.event.module.aliases[found.name], found.name
    return finding(
        f"`{root}` is a size here and hides {library}: `{callee_text(found.event)}` fails",
        (found.event, f"{root} is used as {library}, but the function binds it to a number"),
    )


SENTENCES = {
    HiddenRole.MODEL: _replaced,
    HiddenRole.LOSS: _replaced,
    HiddenRole.BUILT_IN: _built_in,
    HiddenRole.METHOD: _function,
    HiddenRole.FUNCTION: _function,
    HiddenRole.LIBRARY: _library,
}

_loop = template("""
model = nn.Linear(4, 2)
{made} = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    {call}
    loss.backward()
    optimizer.step()
""")
_SIZES = """
class Net(nn.Module):
    def forward(self, x):
        {names} = x.shape
        return F.relu(x).mean()
"""

_split = template("""
def train(model, loader):
    for x, y in loader:
        F.mse_loss(model(x), y).backward()

{part:train}, held_out = random_split(rows, [80, 20])
loader = DataLoader({part}, batch_size=8)
for epoch in range(3):
    train(nn.Linear(4, 1), loader)
""")

_FLAG = """
class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        {kept}
        self.fc = nn.Linear(4, 2)

net = Net({given})
net.{after}
"""

_flag = template(_FLAG, "kept", given="{'noise': 0.1}", after="train()")

FIRES = {
    "settings as self.training": _flag("self.training = config"),
    "settings that are set in a loop": _flag(
        "for k, v in config.items(): setattr(self, k, v)", "{'training': {'lr': 1}}", "eval()"
    ),
    "a list as self.parameters": _flag("self.parameters = [1]", after="parameters()"),
    "loss = loss(…)": _loop("loss", "loss = loss(model(data), target)"),
    "model = model(…)": _loop("loss_fn", "model = model(data); loss = loss_fn(model, target)"),
    "in a trainer of one's own": script("""
class Trainer:
    def __init__(self, model):
        self.model, self.loss = model, nn.MSELoss()

    def fit(self, loader):
        for x, y in loader:
            self.loss = self.loss(self.model(x), y)
            self.loss.backward()
"""),
    "a library hidden by a size": script(_SIZES, names="b, t, F"),
    "a part of the data hides a function": _split(),
    "one of two results hides a built-in": script(
        "for x in data:\n    max, place = x.max(dim=1)\n    print(max([1, 2]))\n"
    ),
    "a built-in": script("len = 5\nfor x in data:\n    print(len(x))\n"),
}

SILENT = {
    "near miss: a part of the data with another name": _split("part"),
    "near miss: the flag itself": _flag("self.training = True"),
    "near miss: out of sight": _flag("self.training = config", "config"),
    "near miss: another name": _flag("self.settings = config"),
    "near miss: sizes under other names": script(_SIZES, names="b, t, f"),
    "two names": _loop("criterion", "loss = criterion(model(data), target)"),
    "near miss: made anew in every iteration": _loop(
        "unused", "loss = nn.CrossEntropyLoss(); loss = loss(model(data), target)"
    ),
    "near miss: once, outside any loop": script(
        "from torch import nn\nloss = nn.MSELoss()\nloss = loss(a, b)\nloss.backward()\n"
    ),
}
