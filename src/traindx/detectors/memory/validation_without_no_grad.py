from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.needless_graphs import needless_graphs
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("evaluation-with-grad",))
def check(run: Run) -> Findings:
    """A validation loop runs the model while gradients are recorded.

    ## What it detects
    A loop over validation or test data that runs the model and learns nothing from it while
    autograd records, in a program whose calls are in sight from its start. Where one loop trains
    and validates in turn (`for phase in ...`), the turns that validate.

    ## Why it matters
    Every forward pass builds a graph and keeps its activations: validation needs as much memory as
    training, runs slower, and may run out of memory with a batch size that trains well.

    ## What to do
    Put `@torch.no_grad()` on the function, or the loop into `with torch.no_grad():`.

    ## When it is wrong
    HeldOutPass that needs gradients (attacks, saliency, test-time training) asks for them in the
    loop and is left alone, as is a function whose callers are out of sight, and a loop within a
    context, or under a decorator, that is not known to leave gradients on.
    """
    for found in each_place(
        run, needless_graphs, lambda graph: (graph.loop.story, graph.loop.run.site.node)
    ):
        forward = found.evaluation.forward
        yield finding(
            f"The {found.evaluation.split} loop runs {forward.text} while gradients are recorded",
            (found.loop.run.site, "the loop"),
            (forward, "a graph is built here, and never used"),
            at=forward,
            patch=found.patch(),
            is_symptom=False,
        )


_program = template("""
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

{decorator:}
def validate(model, val_loader):
    model.eval()
    correct = 0
    for data, target in val_loader:
        {forward:output = model(data)}
        correct += (output.argmax(1) == target).sum().item()
    return correct

for epoch in range(3):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    {call:validate(model, val_loader)}
""")

_INLINE = """
{before}
def main():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        model.train()
        for data, target in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(data), target).backward()
            optimizer.step()
        model.eval()
        {validation}

main()
"""
_VALIDATION = "for data, target in val_loader: output = model(data)"
_inline = template(_INLINE, validation=_VALIDATION, before="")


def _in_context(context: str, before: str = "") -> Run:
    return _inline(f"with {context}:\n            {_VALIDATION}", before)


_by_phase = template("""
GRADIENTS = {{"train": torch.enable_grad, "{held}": torch.no_grad}}
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def batches(phase):
    for rows in torch.arange(len(data[phase])).split(32):
        yield data[phase][rows], labels[phase][rows]

def run(phase):
    with GRADIENTS.get(phase, torch.enable_grad)():
        for x, y in batches(phase):
            loss = nn.functional.cross_entropy(model(x), y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

for epoch in range(3):
    for phase in ("train", "val"):
        run(phase)
""")

_LATER = """
def predictions(model, loader):
    with torch.no_grad():
        return {opened}model(x).argmax(1) == y for x, y in loader{closed}

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
model.eval()
for right in predictions(model, val_loader):
    print(right.float().mean().item())
"""

FIRES = {
    "a generator that runs behind the context": script(_LATER, opened="(", closed=")"),
    "a phase that no table knows": _by_phase("valid"),
    "a validation function": _program(),
    "in a context that leaves gradients on": _in_context("torch.autocast('cuda')"),
    "a loop in the epoch": _inline(),
}

SILENT = {
    "near miss: a list that is made in the context": script(_LATER, opened="[", closed="]"),
    "near miss: a phase that the table knows": _by_phase("val"),
    "near miss: a context under a name": _in_context("off()", "off = torch.no_grad"),
    "near miss: a context that is made before": _in_context("context", "context = torch.no_grad()"),
    "near miss: one context or another": _in_context("torch.no_grad() if fast else attack()"),
    "near miss: a context of one's own": _in_context("evaluating(model)"),
    "near miss: a decorator of one's own": _program("@frozen"),
    "near miss: a pass that only renews batch statistics": _program(forward="_ = model(data)"),
    "decorated": _program("@torch.no_grad()"),
    "inference mode": _program("@torch.inference_mode()"),
    "near miss: the caller switches off": _program(
        call="with torch.no_grad():\n        validate(model, val_loader)"
    ),
    "near miss: an attack needs gradients": _program(
        forward="data.requires_grad = True; output = model(data)"
    ),
    "callers out of sight": script(
        "import torch\n\ndef evaluate(model, test_loader):\n"
        "    for x, y in test_loader:\n        print(model(x))\n",
        path="evaluate.py",
    ),
}
