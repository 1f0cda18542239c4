"""The model is still in evaluation mode while it trains."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Answer, Value, constant
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding, insert_before
from traindx.analysis.program.training.modes import (
    excludes,
    is_made_in_sight,
    last_mode,
    may_be_evaluating,
    mode_dependent,
    varies,
)
from traindx.analysis.program.training.ownership import trains
from traindx.analysis.program.training.phases import handed_models, training_passes
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("training-in-eval-mode",))
def check(run: Run) -> Findings:
    """The model is put into evaluation mode and never back before it trains.

    ## What it detects
    A model whose parameters an optimizer holds and whose training pass runs in evaluation mode:
    after `eval()` before the loop, or at the end of validation without a `train()` before the next
    epoch, or the next batch where validation runs every so many batches, or after a mode that was
    meant to be restored and was read too late; or in which `from_pretrained` gave it.

    ## Why it matters
    Dropout is off and batch norm uses (and never updates) its running statistics. The first epoch
    trains as meant, all later ones do not; results get worse without any error.

    ## What to do
    Call `model.train()` at the top of every epoch, before the loop over batches.

    ## When it is wrong
    Fine-tuning with frozen statistics calls `eval()` on purpose, usually on a part of the model;
    parts are not looked at, and a model without dropout and batch norm is left alone.
    """
    for story in program_of(run).stories:
        seen: set[object] = set()
        for event, _ in training_passes(story):
            for model, mode in _models(story, event):
                layers = mode_dependent(story, model)
                if layers and event.node not in seen and _is_as_loaded(story, event, model, mode):
                    seen.add(event.node)
                    yield _as_loaded(story, event, model, layers)
                setting = _left_in_eval(story, event, model, mode)
                if setting is None or event.node in seen or setting.event.node in seen:
                    continue
                is_shared = bool(set(_nodes(event)) & set(_nodes(setting.event)))
                if layers or (is_shared and not is_made_in_sight(model)):
                    seen |= {event.node, setting.event.node}
                    yield _finding(story, event, setting, layers)


def _models(story: Story, event: ProgramEvent) -> list[tuple[Value, Value]]:
    """The models that run in a call, with the modes that they are in."""
    own = [] if event.mode is None or event.receiver is None else [(event.receiver, event.mode)]
    return own or handed_models(story, event)


def _nodes(event: ProgramEvent) -> list[object]:
    return [loop.site.node for loop in event.loops]


def _left_in_eval(story: Story, event: ProgramEvent, model: Value, mode: Value) -> Deed | None:
    """What put a model that an optimizer trains into evaluation mode before a pass."""
    if not may_be_evaluating(mode) or not any(
        d.subject is not None and trains(d.subject, model) for d in story.does(Do.STEP)
    ):
        return None
    setting = last_mode(story, model, event)
    if setting is None or excludes(setting.event, event):
        return None
    if constant(mode) is not False:  # on some path: every so many steps, not by a setting
        own = [g for g in setting.event.guards if g not in event.guards]
        if not own or not all(varies(g) for g in own):
            return None
    others = story.handed_on(model, after=setting.event, before=event)
    return (
        None if any(e.node is not event.node and e.name != event.name for e in others) else setting
    )


def _is_as_loaded(story: Story, event: ProgramEvent, model: Value, mode: Value) -> bool:
    """Tell whether a model trains in the evaluation mode in which a library has loaded it."""
    is_loaded = constant(mode) is False and last_mode(story, model, event) is None
    return is_loaded and story.escapes(model, before=event) is Answer.NO and model.site is not None


def _as_loaded(story: Story, event: ProgramEvent, model: Value, layers: list[str]) -> Finding:
    name = model.called("the model")
    return finding(
        f"`{name}` trains in evaluation mode, as from_pretrained gives it ({', '.join(layers)})",
        "training-in-eval-mode",
        event,
        cite(model, "from_pretrained puts the model into evaluation mode"),
        cite(event, "and no train() before this training step"),
        strength=Strength.MODERATE,  # many fine-tune so and do well: it explains little by itself
        is_symptom=True,
        patch=insert_before(event.loops[-1].site, f"{name}.train()") if model.names else None,
    )


def _finding(story: Story, event: ProgramEvent, setting: Deed, layers: list[str]) -> Finding:
    name = setting.text
    touched = f" ({', '.join(layers)})" if layers else ""
    batches = event.loops[-1]
    # where validation interrupts the passes over batches, a line before them changes nothing
    settings = [d for d in story.does(Do.EVAL_MODE) if d.subject is setting.subject]
    is_inside = any(batches.site.node in _nodes(d.event) for d in settings)
    return finding(
        f"`{name}` trains after `{name}.eval()`{touched}",
        "training-in-eval-mode",
        setting,
        cite(setting, f"{name} is put into evaluation mode here"),
        cite(event, "and no train() before this training step"),
        is_symptom=True,
        patch=None if is_inside else insert_before(batches.site, f"{name}.train()"),
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.{layer}, nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for epoch in range(3):
    {top}
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    {validation}
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
"""


def _program(
    before: str = "", top: str = "pass", validation: str = "model.eval()", layer: str = "Dropout()"
) -> Run:
    text = _PROGRAM.format(before=before, top=top, validation=validation, layer=layer)
    return make_run(sources={"train.py": text})


_HIDDEN = """
import torch
from losses import score_matching

def run(net, batches, test_batch):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step, batch in enumerate(batches):
        {top}
        loss = score_matching(net, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            net.eval()
            with torch.no_grad():
                test_loss = score_matching(net, test_batch)
            {after}
"""


def _hidden(top: str = "pass", after: str = "pass") -> Run:
    return make_run(sources={"run.py": _HIDDEN.format(top=top, after=after)})


FIRES = {
    "validation among the batches, the pass out of sight": _hidden(),
    "never back after validation": _program(),
    "train once before all epochs": _program(before="model.train()"),
    "eval before the loop": _program(before="model.eval()", validation="pass"),
}

_EVERY = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def validate():
    model.eval()
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
{back}
for epoch in range(3):
    model.train()
    for i, (data, target) in enumerate(train_loader):
        if i % 100 == 0:
            validate()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
"""
FIRES["every so many batches"] = make_run(sources={"train.py": _EVERY.format(back="")})

_TRIALS = """
import torch
from dgl.nn import GraphConv
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width, self.conv = width, GraphConv(width, 2)
        self.drop = nn.Dropout()
    def forward(self, g, x):
        return self.drop(self.conv(g, x))

for width in widths:
    model = Net(width)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(9):
        model.train()
        for g, x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(g, x), y).backward()
            optimizer.step()
        model.eval()
"""

SILENT = {
    "near miss: a new model of the same width for each trial": make_run(
        sources={"train.py": _TRIALS}
    ),
    "near miss: back in training mode for every batch": _hidden(top="net.train()"),
    "near miss: the last validation ends the run": _hidden(after="return"),
    "every so many batches, and back": make_run(
        sources={"train.py": _EVERY.format(back="    model.train()")}
    ),
    "train at the top of the epoch": _program(top="model.train()"),
    "near miss: nothing that minds the mode": _program(layer="ReLU()"),
    "near miss: another model is evaluated": _program(before="teacher.eval()", validation="pass"),
}
