"""A hidden state carries its graph from batch to batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import training_loops
from traindx.source.models import layers_of
from traindx.source.module import Module, key_of
from traindx.source.patches import diff, inserting_after
from traindx.source.project import Project

DEEP = 2  # levels of classes and functions that a model is made of
READS = frozenset(
    {"print", "len", "type", "isinstance", "id", "str", "repr", "size", "dim", "mean", "norm",
     "sum", "abs", "item", "std", "max", "min", "numel"}
)  # fmt: skip


@detector(needs=("source",), suggests=("graph-retained-across-steps",))
def check(run: Run) -> Iterator[Finding]:
    """A recurrent state is passed on to the next batch with its graph.

    ## What it detects
    `out, hidden = model(x, hidden)` in the loop whose every iteration calls `backward`, where
    `hidden` outlives the iteration and nothing detaches it or starts it anew.

    ## Why it matters
    The second backward runs into the first batch's graph, which is freed: it raises. With
    `retain_graph=True` it goes back to the first batch instead, slower and larger at every step.

    ## What to do
    Detach after every step: `hidden = hidden.detach()`, for an LSTM both of its parts.

    ## When it is wrong
    A state that the model or a part of it detaches itself, that is handed to a function which may
    detach it, or that is started anew for every batch, is left alone.
    """
    project = project_of(run)
    for loop in training_loops(project):
        for backward in loop.does(Do.BACKWARD):
            inner = backward.loops[-1]
            forward = next((a for a in _forwards(loop.acts, backward) if _state(a)), None)
            if forward is None or backward.guards:
                continue
            state = _state(forward)
            if _is_renewed(inner, forward, state) or _model_detaches(project, forward):
                continue
            if _is_handed_on(project, inner, forward, state):
                continue
            yield Finding(
                claim=f"`{state}` carries the graph of every earlier batch into the next one",
                strength=Strength.STRONG,
                evidence=(
                    forward.module.cite(forward.node, f"{state} goes in and comes out here"),
                    backward.module.cite(backward.node, "backward runs for every batch here"),
                ),
                shows="graph-retained-across-steps",
                is_symptom=True,
                location=forward.location,
                patch=_patch(project, forward, backward, state),
            )
            break


def _forwards(acts: tuple[Act, ...], backward: Act) -> Iterator[Act]:
    for act in acts:
        if (
            act.do is Do.FORWARD
            and act.loops == backward.loops
            and act.function is backward.function
        ):
            yield act


def _state(forward: Act) -> str:
    """The name that goes into the model and comes out of it in one statement."""
    statement, call = forward.statement, forward.node
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return ""
    target = statement.targets[0]
    if not isinstance(target, ast.Tuple) or not isinstance(call, ast.Call):
        return ""
    given = {key_of(a) for a in (*call.args[1:], *(k.value for k in call.keywords))}
    out = (key_of(e) for e in target.elts[1:])
    return next((k for k in out if k and k in given), "")


def _is_renewed(inner: ast.AST, forward: Act, state: str) -> bool:
    for node in ast.walk(inner):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {key_of(n) for t in targets for n in ast.walk(t)}
            if state in names and node is not forward.statement:
                return True
        is_detach = isinstance(node, ast.Attribute) and node.attr in ("detach_", "detach")
        if is_detach and "loss" not in (key_of(getattr(node, "value", node)) or ""):
            return True
    return "." in state


def _model_detaches(project: Project, forward: Act) -> bool:
    found = project.find_class(forward.module, forward.value.made_by)
    if found is None:
        return forward.value.call is None or not forward.value.is_certain
    return _detaches(project, *found, DEEP)


def _detaches(project: Project, module: Module, node: ast.AST, depth: int) -> bool:
    """Tell whether a class or function cuts a graph, or one that it builds on does."""
    text = ast.unparse(node)
    if "detach" in text or ".data" in text or "no_grad" in text:
        return True
    loaded = [n for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute))]
    names = {name for n in loaded if (name := module.qualified(n))} if depth else set()
    found: list[tuple[Module, ast.AST] | None] = []
    for name in names:
        found += [project.find_class(module, name), project.find_function(module, name)]
    used = [f for f in found if f is not None and f[1] is not node]
    return any(_detaches(project, home, part, depth - 1) for home, part in used)


def _is_handed_on(project: Project, inner: ast.AST, forward: Act, state: str) -> bool:
    """Tell whether the loop gives the state to something that may detach it in place."""
    for call, name in forward.module.calls(inner):
        if call is forward.node:
            continue
        func = call.func
        if isinstance(func, ast.Attribute) and key_of(func.value) == state:
            if func.attr not in READS:
                return True
            continue
        given = {key_of(a) for a in (*call.args, *(k.value for k in call.keywords))}
        if state in given and _may_detach(project, forward.module, name):
            return True
    return False


def _may_detach(project: Project, module: Module, name: str) -> bool:
    if name in READS or name.startswith(("torch.", "numpy.")):
        return False
    found = project.find_function(module, name)
    return found is None or _detaches(project, *found, DEEP)


def _patch(project: Project, forward: Act, backward: Act, state: str) -> str | None:
    made, statement = forward.value.call, backward.statement
    if made is None or statement is None:
        return None
    layers = layers_of(project, forward.module, made)
    if layers & {"GRU", "RNN", "GRUCell", "RNNCell"} and not layers & {"LSTM", "LSTMCell"}:
        text = f"{state} = {state}.detach()"
    elif layers & {"LSTM", "LSTMCell"} and not layers & {"GRU", "RNN", "GRUCell", "RNNCell"}:
        text = f"{state} = tuple(part.detach() for part in {state})"
    else:
        return None
    return diff(backward.module, inserting_after(backward.module, statement, text))


_PROGRAM = """
import torch
from torch import nn

def forget(state):
    for part in state:
        part.{forget}

class Memory(nn.Module):
    def forward(self, state):
        return state.{memory}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.{cell}(8, 16, batch_first=True)
        self.fc = nn.Linear(16, 4)
        {own}

    def forward(self, x, hidden):
        out, hidden = self.rnn(x, hidden)
        return self.fc(out), hidden

model = Net()
optimizer = torch.optim.Adam(model.parameters())
hidden = None
for x, y in loader:
    {before}
    optimizer.zero_grad()
    output, hidden = model(x, hidden)
    loss = nn.functional.mse_loss(output, y)
    loss.backward()
    optimizer.step()
    {after}
"""


def _program(before: str = "pass", after: str = "pass", **parts: str) -> Run:
    filled = {"cell": "GRU", "forget": "size()", "memory": "clone()", "own": "pass", **parts}
    text = _PROGRAM.format(before=before, after=after, **filled)
    return make_run(sources={"train.py": text})


FIRES = {
    "a GRU": _program(),
    "an LSTM": _program(cell="LSTM"),
    "printed": _program(after="print(hidden.mean()); forget(hidden)"),
}

SILENT = {
    "detached": _program(after="hidden = hidden.detach()"),
    "near miss: started anew": _program(before="hidden = None"),
    "near miss: detached in place": _program(after="hidden.detach_()"),
    "near miss: detached by a function": _program(before="hidden = repackage(hidden)"),
    "near miss: detached in place by a function": _program(
        after="forget(hidden)", forget="detach_()"
    ),
    "near miss: given to a function out of sight": _program(after="reset(hidden)"),
    "near miss: detached by a part of the model": _program(
        own="self.memory = Memory()", memory="detach()"
    ),
}
