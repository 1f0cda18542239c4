"""Inputs and targets are the same slice of the data."""

import re
from collections.abc import Iterator

from traindx.analysis.program.execution.values import (
    ClassValue,
    Known,
    Result,
    Value,
    constant,
    is_same,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import model_inputs
from traindx.analysis.program.training.kinds import names_of, words_of
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

TARGETS = frozenset({"y", "yb", "y_batch", "target", "targets", "label", "labels", "tgt", "trg"})
# names of a model that is to give back what it was given
REBUILDS = re.compile(r"auto_?encod|reconstruct|denois|inpaint|diffusion|\bvae\b|\bmlm\b", re.I)
LOSSES = ("cross_entropy", "nll_loss")
Pair = tuple[Value, Value]


@detector(needs=("source",), suggests=("misaligned-labels",))
def check(run: Run) -> Findings:
    """A target is cut out of the data by the very slice that cuts out the input.

    ## What it detects
    A cross-entropy whose target is the same slice of the same data as the input of the model that
    it judges: `x = data[i : i + n]` and `y = data[i : i + n]`. Where no loss is in sight, two such
    slices of which one is named like a target.

    ## Why it matters
    A model of sequences is to predict what comes next. Here the answer is the input itself: the
    loss falls to nothing, or, if it is so in validation only, rises without end.

    ## What to do
    Move the target by one: `y = data[i + 1 : i + 1 + n]`.

    ## When it is wrong
    An autoencoder's target is its input; code that says so is left alone. So is code that moves or
    masks one of the two later (`targets[:, 1:]` in the loss, a masked input), and `labels` for a
    model that moves them itself, as those of transformers do.
    """
    program = program_of(run)
    seen: set[object] = set()
    for given, wanted in (*_in_losses(program), *_in_batches(program)):
        if wanted.site is not None and wanted.site.node not in seen:
            seen.add(wanted.site.node)
            yield _finding(given, wanted)


def _in_losses(program: Program) -> Iterator[Pair]:
    for loss in program.results(*LOSSES):
        scores, target = loss.operation.argument("input"), loss.operation.argument("target")
        if scores is None or target is None or _rebuilds(loss.story):
            continue
        wanted = whole_tensor(target)
        for given in map(whole_tensor, model_inputs(loss.story, scores, loss.event)):
            is_twin = given is not wanted and is_same(given, wanted, by_turn=True)
            if _is_cut(wanted) and is_twin and not _is_view(given, wanted):
                yield given, wanted


def _is_view(given: Value, wanted: Value) -> bool:
    """Tell whether names say that the second is another view of the first: `x` and `x2`."""
    words = [{w for n in names_of(v) for w in words_of(n)} for v in (given, wanted)]
    return bool(words[0]) and words[0] == words[1]


def _in_batches(program: Program) -> Iterator[Pair]:
    """Two slices in a function that makes batches for a program out of sight."""
    if any(_is_moved(v) for s in program.stories for v in s.values):
        return
    for story in program.stories:
        if story.does(Do.FORWARD, Do.BACKWARD) or _rebuilds(story):
            continue
        cuts = [v for v in story.values if _is_cut(v)]
        for wanted in cuts:
            twins = (v for v in cuts if v is not wanted and is_same(v, wanted))
            is_target = any(n.lower() in TARGETS for n in names_of(wanted))
            given = next(twins, None) if is_target else None
            if given is not None and not any(n.lower() in TARGETS for n in names_of(given)):
                yield given, wanted


def _is_cut(value: Value) -> bool:
    """Tell whether a value is cut out of a sequence between two bounds that move."""
    return any(not (isinstance(a, Known) or isinstance(b, Known)) for a, b in _slices(value))


def _is_moved(value: Value) -> bool:
    """`logits[:, :-1]` and `targets[:, 1:]`: all but one."""
    for low, high in _slices(value):
        is_open = isinstance(low, Known) and isinstance(high, Known)
        if is_open and (constant(low), constant(high)) in ((1, None), (None, -1)):
            return True
    return False


def _slices(value: Value) -> Iterator[Pair]:
    """The bounds of the slices that a value is cut by."""
    if not isinstance(value, Result) or value.maker != "operator.getitem":
        return
    for key in (value.args[1], *value.args[1].inputs):
        if isinstance(key, Result) and key.maker == "builtins.slice" and len(key.args) > 1:
            yield key.args[0], key.args[1]


def _rebuilds(story: Story) -> bool:
    """Tell whether names speak of a model that gives back its input."""
    module = story.execution.module
    names = [n for v in story.values for n in names_of(v)]
    owners = [e.callee.node.name for e in story.events if isinstance(e.callee, ClassValue)]
    return any(REBUILDS.search(name) for name in (module.path, *names, *owners))


def _finding(given: Value, wanted: Value) -> Finding:
    defaults = ("the target", "the input")
    pairs = zip((wanted, given), defaults, strict=True)
    names = [v.called(default) for v, default in pairs]
    return finding(
        f"`{names[0]}` is the same slice as `{names[1]}`: it is not moved by one",
        "misaligned-labels",
        wanted,
        cite(given, f"input: `{source_text(given)}`"),
        cite(wanted, f"target: `{source_text(wanted)}`"),
        is_symptom=True,
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(0, 1000, 24):
    x = data[:, i : i + 24]
    {name} = {value}
    {then}
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""


_LOSS = "nn.functional.cross_entropy(model(x).flatten(0, 1), {name}.flatten())"


def _program(value: str, name: str = "y", then: str = "pass", loss: str = _LOSS) -> Run:
    given = {"value": value, "name": name, "then": then, "loss": loss.format(name=name)}
    return make_run(sources={"train.py": _PROGRAM.format(**given)})


_BRANCHES = """
import torch

def get_batch(split, i):
    if split == "val":
        x = val[i : i + 24]
        y = val[i : i + 24]
    else:
        x = train[i : i + 24]
        y = train[i + 1 : i + 25]
    return x, y
"""
_SAME = "data[:, i : i + 24]"

FIRES = {
    "the same slice": _program(_SAME),
    "the same slice, moved to the device": _program(_SAME, then="x, y = x.cuda(), y.cuda()"),
    "in one of two branches": make_run(sources={"train.py": _BRANCHES}),
}

SILENT = {
    "moved by one": _program("data[:, i + 1 : i + 25]"),
    "near miss: of other data": _program("answers[:, i : i + 24]"),
    "near miss: a second view": _program(_SAME, "x2"),
    "near miss: moved in the loss": _program(
        _SAME,
        loss="nn.functional.cross_entropy(model(x)[:, :-1].flatten(0, 1), y[:, 1:].flatten())",
    ),
    "near miss: a masked input": _program(
        _SAME, then="hide = torch.rand(x.shape) < 0.15; x = x.masked_fill(hide, 0); y[~hide] = -100"
    ),
    "near miss: masked by a function": _program(_SAME, then="x = mask_tokens(x)"),
    "near miss: noise is added": _program(_SAME, loss="nn.functional.mse_loss(model(x + e), y)"),
    "near miss: a model that moves them": _program(_SAME, loss="model(x, labels=y).loss"),
    "near miss: an autoencoder": _program(_SAME, then="reconstruction = model(x)"),
}
