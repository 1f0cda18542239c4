"""A validation loop records graphs that nobody needs."""

from traindx.analysis.program.execution.values import Answer, Result, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, decorate, enclose, finding
from traindx.analysis.program.training.gradients import is_frozen, wants_gradients
from traindx.analysis.program.training.phases import LEARNS, HeldOutPass, Loop, evaluations
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
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
    for story in program_of(run).stories:
        if story.execution.function is not None and not story.does(Do.BACKWARD):
            continue  # a caller out of sight may switch gradients off
        seen: set[object] = set()
        for evaluation in evaluations(story):
            loop = evaluation.loop
            if loop is None or loop.run.site.node in seen or not _records(story, evaluation):
                continue
            seen.add(loop.run.site.node)
            yield _finding(evaluation, loop)


def _records(story: Story, evaluation: HeldOutPass) -> bool:
    """Tell whether every run of a pass builds a graph that nothing is done with."""
    loop, model = evaluation.loop, evaluation.forward.subject
    if loop is None or model is None or is_frozen(story, model):
        return False
    is_shared = bool(Loop(story, loop.run).does(*LEARNS))
    if wants_gradients(loop.events, is_shared=is_shared) or story.reads_gradients(loop.events):
        return False
    return all(_builds_graph(d) and not _is_dropped(story, d) for d in evaluation.passes)


def _builds_graph(forward: Deed) -> bool:
    result = forward.event.result
    is_inside = not isinstance(result, Result) or result.gradients is Answer.YES
    return forward.event.gradients is Answer.YES and is_inside


def _is_dropped(story: Story, forward: Deed) -> bool:
    """Tell whether the output is thrown away: a pass that only renews batch statistics."""
    result: Value | None = forward.event.result
    return forward.event.is_dropped or (result is not None and "_" in result.names)


def _finding(evaluation: HeldOutPass, loop: Loop) -> Finding:
    forward = evaluation.forward
    over = loop.run.site.module
    is_shared = bool(Loop(evaluation.story, loop.run).does(*LEARNS))
    patch = None
    if over.aliases.get("torch") == "torch" and not is_shared:
        in_place = evaluation.learns or over.function_of(loop.run.site.node) is None
        patch = (
            enclose(loop.run.site, "with torch.no_grad():")
            if in_place
            else decorate(loop.run.site, "@torch.no_grad()")
        )
    return finding(
        f"The {evaluation.split} loop runs {forward.text} while gradients are recorded",
        "evaluation-with-grad",
        forward,
        cite(loop.run.site, "the loop"),
        cite(forward, "a graph is built here, and never used"),
        patch=patch,
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

{decorator}
def validate(model, val_loader):
    model.eval()
    correct = 0
    for data, target in val_loader:
        {forward}
        correct += (output.argmax(1) == target).sum().item()
    return correct

for epoch in range(3):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    {call}
"""


def _program(decorator: str = "", forward: str = "output = model(data)", call: str = "") -> Run:
    call = call or "validate(model, val_loader)"
    text = _PROGRAM.format(decorator=decorator, forward=forward, call=call)
    return make_run(sources={"train.py": text})


_INLINE = """
import torch
from torch import nn

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
        for data, target in val_loader:
            output = model(data)

main()
"""

_IN_CONTEXT = _INLINE.replace(
    "for data, target in val_loader:\n            output",
    "with {context}:\n            for data, target in val_loader:\n                output",
)


def _in_context(context: str, before: str = "") -> Run:
    text = _IN_CONTEXT.format(context=context)
    return make_run(sources={"train.py": text.replace("def main", f"{before}\ndef main")})


_BY_PHASE = """
import torch
from torch import nn

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
"""


def _by_phase(held: str) -> Run:
    return make_run(sources={"train.py": _BY_PHASE.format(held=held)})


FIRES = {
    "a phase that no table knows": _by_phase("valid"),
    "a validation function": _program(),
    "in a context that leaves gradients on": _in_context("torch.autocast('cuda')"),
    "a loop in the epoch": make_run(sources={"train.py": _INLINE}),
}

SILENT = {
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
    "callers out of sight": make_run(
        sources={
            "evaluate.py": "import torch\n\ndef evaluate(model, test_loader):\n"
            "    for x, y in test_loader:\n        print(model(x))\n"
        }
    ),
}
