"""Padded positions count in the loss."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.losses import LossCall, losses_in, wants
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.project import Project

IGNORED = -100  # what cross-entropy leaves out by default
CHOOSERS = frozenset(
    {"pack_padded_sequence", "pack_sequence", "masked_select", "nonzero", "index_select", "gather"}
)
TARGETS = ("label", "target", "tgt", "trg", "tag")
# pads are looked for among the targets, or become the index that is left out
MARKS = re.compile(rf"(?:{'|'.join(TARGETS)})\w*(?: ?!=|\.ne\().{{0,20}}pad|-100\b", re.IGNORECASE)


@detector(needs=("source",), suggests=("padding-in-loss",))
def check(run: Run) -> Iterator[Finding]:
    """Targets are padded and cross-entropy ignores no index.

    ## What it detects
    `pad_sequence` over targets, with a padding value that cross-entropy does not leave out by
    itself (−100), or tokens filled up with a pad by hand and flattened for the loss, and a
    cross-entropy without `ignore_index` in a file that knows no mask.

    ## Why it matters
    The model learns to predict padding, which is most of a batch of short texts: the loss looks
    good and the output is empty.

    ## What to do
    `ignore_index=pad_id`, or pad targets with −100.

    ## When it is wrong
    A padding class may be wanted, as an end of sequence is; hence only a remark. Targets that are
    packed, cut to their lengths or chosen by what is no pad are left alone.
    """
    project = project_of(run)
    for loss in losses_in(project):
        module = loss.module
        made = loss.act.value.call or loss.call
        if wants(loss) != "logits" or argument(made, "ignore_index") is not None:
            continue
        if argument(loss.call, "ignore_index") is not None or "mask" in module.text:
            continue
        padded = _padded_targets(module) or (_filled_up(module) if _is_flattened(loss) else None)
        if padded is None or _leaves_pads_out(project, loss):
            continue
        is_mean = literal(argument(made, "reduction")) in (None, "mean", "sum")
        if not is_mean or argument(made, "weight") is not None:
            continue
        yield Finding(
            claim="Padded positions of the targets count in the loss",
            strength=Strength.MODERATE,
            evidence=(
                module.cite(padded, "targets are padded here"),
                module.cite(loss.call, "and no index is ignored here"),
            ),
            suggests={"padding-in-loss": Strength.MODERATE},
            location=module.location(made if made in module.parents else loss.call),
        )


def _leaves_pads_out(project: Project, loss: LossCall) -> bool:
    """Tell whether pads are dropped, or marked as ignored, on the way to the loss."""
    module = loss.module
    if MARKS.search(module.text):
        return True
    at: ast.AST = module.function_of(loss.call) or module.tree
    waiting = [] if loss.target is None else [loss.target]
    seen: set[str] = set()
    while waiting:
        node = waiting.pop()
        if any(_chooses(module, n) for n in ast.walk(node)):
            return True
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - seen
        seen |= names
        waiting += [v for name in names for v in project.lookup(module, at, name)]
    return False


def _chooses(module: Module, node: ast.AST) -> bool:
    """`pack_padded_sequence(…)`, `targets[targets != 0]`, `targets[i, :length]`."""
    if isinstance(node, ast.Call):
        name = (module.qualified(node.func) or "").rsplit(".", 1)[-1]
        return name in CHOOSERS or getattr(node.func, "attr", "") in CHOOSERS
    if not isinstance(node, ast.Subscript):
        return False
    ends = [s.upper for s in ast.walk(node.slice) if isinstance(s, ast.Slice) and s.upper]
    is_cut = any(literal(end) is None for end in ends)
    return is_cut or any(isinstance(n, ast.Compare) for n in ast.walk(node.slice))


def _is_flattened(loss: LossCall) -> bool:
    """Tell whether every position is a target of its own: `target.view(-1)`."""
    text = "" if loss.target is None else ast.unparse(loss.target)
    return any(call in text for call in (".view(-1)", ".reshape(-1)", ".flatten()"))


def _filled_up(module: Module) -> ast.BinOp | None:
    """`tokens + [pad] * (length - len(tokens))`: padding by hand."""
    for node in module.nodes(ast.BinOp):
        if not isinstance(node.op, ast.Mult) or not isinstance(node.left, ast.List):
            continue
        held = [key_of(e) or str(literal(e) or "") for e in node.left.elts]
        is_pad = len(held) == 1 and "pad" in held[0].lower()
        if is_pad and "len(" in ast.unparse(node.right):
            return node
    return None


def _padded_targets(module: Module) -> ast.Call | None:
    for call, name in module.calls():
        if not name.endswith("pad_sequence") or not call.args:
            continue
        value = argument(call, "padding_value", 2)
        statement = module.statement_of(call)
        kept = [key_of(t) or "" for t in getattr(statement, "targets", [])]
        names = " ".join([ast.unparse(call.args[0]), *kept]).lower()
        if literal(value) != IGNORED and any(word in names for word in TARGETS):
            return call
    return None


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


FIRES = {
    "padded with zero": _program(),
    "padded by hand": _by_hand("F.cross_entropy(scores.view(-1, 50), tokens.view(-1))"),
}

SILENT = {
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
