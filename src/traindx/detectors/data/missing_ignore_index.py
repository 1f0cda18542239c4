"""Padded positions count in the loss."""

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Known,
    Result,
    Value,
    constant,
    is_same,
    origins,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import data_chain
from traindx.analysis.program.training.ignored_padding import other_indices
from traindx.analysis.program.training.kinds import names_of
from traindx.analysis.program.training.operations import (
    Operation,
    name_of_operation,
    operation_of,
)
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.analysis.program.training.token_labels import padded_labels
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

IGNORED = -100  # what cross-entropy leaves out by default
INDEXED = {"scatter": 2, "gather": 2, "one_hot": 0}  # where these operations take class indices
COMPARES = frozenset({"eq", "ne", "gt", "lt", "ge", "le"})
# losses of numbers, which have no index to ignore
OF_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
CAUSE = "padding-in-loss"


@dataclass(frozen=True, eq=False)
class _Use:
    """A tensor of classes that a loss takes, by itself or as an index."""

    story: Story
    event: ProgramEvent
    target: Value
    ignored: Value | None = None  # cross-entropy's own, -100

    def leaves_out(self, padded: Value | None) -> bool:
        """Tell whether what a tensor is padded with is, or may be, what the loss ignores."""
        if self.ignored is None:
            return False
        pad = None if padded is None else _pad_of(padded)
        is_known = isinstance(constant(self.ignored), int) and isinstance(constant(pad), int)
        return not is_known or constant(pad) == constant(self.ignored)


@detector(needs=("source",), suggests=("padding-in-loss",))
def check(run: Run) -> Findings:
    """Targets are padded and the loss ignores no index.

    ## What it detects
    `pad_sequence` over targets, with a padding value that cross-entropy does not leave out by
    itself (−100), or tokens filled up with a pad by hand, on their way to a cross-entropy without
    `ignore_index`, or to a loss written by hand that compares the targets with nothing. Also an
    `ignore_index` that is another number than the padding, and padded tokens of a tokenizer that
    become the labels of a model of Transformers as they are.

    ## Why it matters
    The model learns to predict padding, which is most of a batch of short texts: the loss looks
    good and the output is empty.

    ## What to do
    `ignore_index=pad_id`, or pad targets with −100.

    ## When it is wrong
    A padding class may be wanted, as an end of sequence is; hence only a remark where the way from
    the padding to the loss is not in sight. Targets that are packed, cut to their lengths or chosen
    by what is no pad are left alone.
    """
    program = program_of(run)
    seen: set[object] = set()
    elsewhere: list[Value] | None = None  # everything padded: looked for where it is asked for
    for use in (*_in_losses(program), *_by_index(program)):
        chain = list(data_chain(use.story, use.target))
        is_marked = _is_marked(use.story, chain)
        if use.event.node in seen or is_marked or any(map(_chooses, chain)) or _is_compared(use):
            continue
        padded = next((v for v in chain if _pads(v)), None)
        is_seen = padded is not None
        if padded is None:
            elsewhere = _padded(program) if elsewhere is None else elsewhere
            padded = _namesake(chain, elsewhere)
        if padded is not None and not use.leaves_out(padded if is_seen else None):
            seen.add(use.event.node)
            yield _finding(use.event, padded, is_seen=is_seen)
    for found in other_indices(program):
        if found.loss.node not in seen:
            seen.add(found.loss.node)
            yield finding(
                f"The loss ignores index {found.ignored}, and targets are padded with {found.pad}",
                CAUSE,
                found.loss,
                cite(found.padded, f"targets are padded with {found.pad} here"),
                cite(found.loss, f"and {found.ignored} is ignored here"),
                is_symptom=True,
            )
    for masking in padded_labels(program):
        if isinstance(masking.at, ProgramEvent) and masking.at.node not in seen:
            seen.add(masking.at.node)
            made = masking.because or masking.at
            yield finding(
                "The labels are padded tokens, and no pad is set to -100",
                CAUSE,
                masking.at,
                cite(made, "the tokenizer pads here"),
                cite(masking.at, masking.says),
                is_symptom=True,
            )


def _padded(program: Program) -> list[Value]:
    """Every padded value, be it used or not."""
    given = (e.result for s in program.stories for e in s.events if e.result is not None)
    return [v for v in (*(v for s in program.stories for v in s.values), *given) if _pads(v)]


def _is_marked(story: Story, chain: list[Value]) -> bool:
    """Tell whether positions of the targets are overwritten: `labels[mask] = -100`."""
    made = [e for x in story.execution.examples for e in x.events]
    stores = (e for e in (*story.events, *made) if e.act is EventForm.STORE and e.name == "[]")
    return any(e.receiver is value for e in stores for value in chain)


def _in_losses(program: Program) -> Iterator[_Use]:
    for loss in program.results("cross_entropy", "nll_loss", *OF_NUMBERS):
        target = loss.operation.argument("target")
        if (
            target is not None
            and loss.event.gradients is not Answer.NO
            and _is_plain(loss.story, loss.event.result, loss.operation)
        ):
            given = loss.operation.settings.get("ignore_index")
            yield _Use(loss.story, loss.event, target, given)


def _is_plain(story: Story, result: Value | None, operation: Operation) -> bool:
    """Tell whether a loss weighs nothing, and its mean is one over all positions."""
    given = operation.settings
    reduction = constant(given.get("reduction"))
    is_reduced = "reduction" not in given or reduction in ("mean", "sum")
    if reduction == "none" and result is not None:
        uses = [operation_of(v) for v in story.made_from(result)]
        is_reduced = bool(uses) and all(u is not None and u.name in ("mean", "sum") for u in uses)
    if operation.name in OF_NUMBERS:
        first = operation_of(operation.argument("input"))
        is_reduced = is_reduced and (first is None or first.name not in ("mul", "getitem"))
    return is_reduced and not {"weight", "**"} & set(given)


def _by_index(program: Program) -> Iterator[_Use]:
    """Losses written by hand: classes are an index into log-probabilities, or made one-hot."""
    for story in program.stories:
        losses = [d.subject for d in story.does(Do.BACKWARD) if d.subject is not None]
        learnt = {id(v) for loss in losses for v in origins(loss)}
        for event in story.events:
            place = INDEXED.get(name_of_operation(event.result) or "")
            operation = None if place is None else operation_of(event.result)
            if operation is None or place is None or len(operation.operands) <= place:
                continue
            made = (event.result, event.receiver)
            if any(v is not None and id(v) in learnt for v in made):
                yield _Use(story, event, operation.operands[place])


def _is_compared(use: _Use) -> bool:
    """Tell whether the program asks of these targets which are pads."""
    own = whole_tensor(use.target)
    for event in use.story.events:
        is_comparison = name_of_operation(event.result) in COMPARES
        operation = operation_of(event.result) if is_comparison else None
        if operation is None:
            continue
        if any(whole_tensor(v) is own or is_same(whole_tensor(v), own) for v in operation.operands):
            return True
    return False


def _chooses(value: Value) -> bool:
    """`targets[targets != 0]`, `targets[i, :length]`: what is taken depends on lengths or pads."""
    if not isinstance(value, Result) or value.maker != "operator.getitem":
        return False
    for key in origins(value.args[1], 30):
        operation = operation_of(key)
        if operation is not None and operation.name in COMPARES | {"nonzero", "invert"}:
            return True
        is_cut = isinstance(key, Result) and key.maker == "builtins.slice"
        if is_cut and not all(isinstance(bound, Known) for bound in key.inputs[1:2]):
            return True
    return False


def _pads(value: Value) -> bool:
    """Tell whether a value is filled up with pads that a loss does not leave out."""
    last = (name_of_operation(value) or "").rsplit(".", 1)[-1]
    operation = operation_of(value) if last in ("pad_sequence", "add") else None
    if operation is None:
        return False
    if last == "pad_sequence":
        return constant(_pad_of(value)) != IGNORED
    if last != "add" or len(operation.operands) != 2:
        return False
    return _fills(operation.operands[1])


def _pad_of(padded: Value) -> Value | None:
    """What a tensor is padded with."""
    operation = operation_of(padded)
    if operation is None or operation.name.rsplit(".", 1)[-1] != "pad_sequence":
        return None
    given = operation.settings.get("padding_value")
    if given is None and len(operation.operands) > 2:
        given = operation.operands[2]
    return Known(0) if given is None else given


def _fills(value: Value) -> bool:
    """`[pad] * (length - len(tokens))`."""
    operation = operation_of(value)
    if operation is None or operation.name != "mul" or len(operation.operands) != 2:
        return False
    listed, count = operation.operands
    members = listed.members if isinstance(listed, Items) else []
    is_counted = any(
        isinstance(v, Result) and v.maker == "builtins.len" for v in origins(count, 12)
    )
    is_pad = len(members) == 1 and (
        constant(members[0]) == 0 or any("pad" in name.lower() for name in names_of(members[0]))
    )
    return is_pad and is_counted


def _namesake(chain: list[Value], padded: list[Value]) -> Value | None:
    """A padded value that goes by the name of a target whose making is out of sight."""
    names = {n for v in chain for n in names_of(v)}
    is_position = any((o := operation_of(v)) is not None and o.operands for v in chain[:1])
    for value in padded:
        own = {n for v in (value, *value.inputs[:1]) for n in names_of(v)}
        if is_position and own & names:
            return value
    return None


def _finding(event: ProgramEvent, padded: Value, *, is_seen: bool) -> Finding:
    return Finding(
        claim="Padded positions of the targets count in the loss",
        strength=Strength.MODERATE,
        evidence=(
            cite(padded, "targets are padded here"),
            cite(event, "and no index is ignored here"),
        ),
        shows=CAUSE if is_seen else None,
        suggests={} if is_seen else {CAUSE: Strength.MODERATE},
        is_symptom=is_seen,
        location=event.location,
    )


_PROGRAM = """
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

def collate(batch):
    inputs = pad_sequence([b[0] for b in batch], batch_first=True)
    targets = pad_sequence([b[1] for b in batch], batch_first=True{padding})
    return inputs, targets

criterion = nn.CrossEntropyLoss({options})
for inputs, targets in loader:
    loss = criterion(model(inputs).flatten(0, 1), {given})
    loss.backward()
"""


def _program(options: str = "", padding: str = "", given: str = "targets.flatten()") -> Run:
    text = _PROGRAM.format(options=options, padding=padding, given=given)
    return make_run(sources={"train.py": text})


_BY_HAND = """
import torch
import torch.nn.functional as F

def encode(text, length):
    tokens = [VOCABULARY[c] for c in text]
    return torch.tensor(tokens + [PAD] * (length - len(tokens)))

def train(model, loader, optimizer):
    for tokens in loader:
        optimizer.zero_grad()
        scores = model(tokens)
        loss = {loss}
        loss.backward()
        optimizer.step()
"""


def _by_hand(loss: str) -> Run:
    return make_run(sources={"train.py": _BY_HAND.format(loss=loss)})


_VOCABULARY = """
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

words = {words}
index = {{w: i for i, w in enumerate(words)}}
PAD = index["<pad>"]

def collate(batch):
    inputs = pad_sequence([b[0] for b in batch], batch_first=True, padding_value=PAD)
    targets = pad_sequence([b[1] for b in batch], batch_first=True, padding_value=PAD)
    {after}
    return inputs, targets

criterion = nn.CrossEntropyLoss(ignore_index={ignored})
for inputs, targets in DataLoader(pairs, 8, collate_fn=collate):
    optimizer.zero_grad()
    criterion(model(inputs).flatten(0, 1), targets.flatten()).backward()
    optimizer.step()
"""
_WORDS = '["<unk>", "<pad>"] + sorted(set(tokens))'


def _vocabulary(ignored: str = "0", words: str = _WORDS, after: str = "pass") -> Run:
    text = _VOCABULARY.format(ignored=ignored, words=words, after=after)
    return make_run(sources={"train.py": text})


FIRES = {
    "another index than the padding's": _vocabulary(),
    "the same of a list with a star": _vocabulary(words='["<unk>", "<pad>", *sorted(tokens)]'),
    "padded with zero": _program(),
    "padded by hand": _by_hand("F.cross_entropy(scores.view(-1, 50), tokens.view(-1))"),
}

SILENT = {
    "near miss: the padding's own index": _vocabulary("PAD"),
    "near miss: the same number": _vocabulary("1"),
    "near miss: marked before": _vocabulary(after="targets = targets.masked_fill(targets == 1, 0)"),
    "near miss: words in an order out of sight": _vocabulary(words="sorted(tokens) + ['<pad>']"),
    "near miss: padded input of one class per text": _by_hand("F.cross_entropy(scores, label)"),
    "ignored": _program("ignore_index=0"),
    "near miss: packed": _program(given="pack_padded_sequence(targets, lengths).data"),
    "near miss: what is no pad": _program(given="targets[targets != 0]"),
    "near miss: cut to its length": _program(given="targets[0, :lengths[0]]"),
    "near miss: pads become what is ignored": _program(
        given="torch.where(targets == 0, -100, targets).flatten()"
    ),
    "near miss: padded with what is ignored": _program(padding=", padding_value=-100"),
}
