from traindx.analysis.program.execution.values import Part, Result, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import finding, insert_after, written_argument
from traindx.analysis.program.training.graphs import Carried, Graphs
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import script
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("graph-retained-across-steps",))
def check(run: Run) -> Findings:
    """A recurrent state is passed on to the next batch with its graph.

    ## What it detects
    A loop whose every turn calls `backward`, where the loss of one turn is computed from a value of
    the turn before (a hidden state, a memory, a running mean) that nothing detaches.

    ## Why it matters
    The second backward runs into the first batch's graph, which is freed: it raises. With
    `retain_graph=True` it goes back to the first batch instead, slower and larger at every step.

    ## What to do
    Detach after every step: `hidden = hidden.detach()`, for an LSTM both of its parts.

    ## When it is wrong
    A state that the model or a part of it detaches itself, that is handed to a function which may
    detach it, or that is started anew for every batch, is left alone.
    """
    for story in program_of(run).stories:
        graphs = story.recall(Graphs)
        seen: set[object] = set()
        for backward in story.does(Do.BACKWARD):
            if backward.event.guards or backward.event.node in seen:
                continue
            carried = graphs.carried(backward)
            if carried and not any(graphs.is_let_go(c.value) for c in carried):
                seen.add(backward.event.node)
                yield _finding(story, backward, carried)


def _finding(story: Story, backward: Deed, carried: list[Carried]) -> Finding:
    taken = carried[0].taken
    name = _name(story, backward, carried[0].value)
    return finding(
        f"`{name}` carries the graph of every earlier batch into the next one",
        (taken if taken.site is not None else backward, f"{name} of the last batch goes in"),
        (backward, "backward runs for every batch here"),
        patch=_patch(backward, name, carried),
    )


def _name(story: Story, backward: Deed, value: Value) -> str:
    """What the function that calls backward calls the state."""
    for event in story.events:
        if event.function is backward.event.function:
            text = written_argument(event, value)
            if text:
                return text
    return value.called("the state")


def _patch(backward: Deed, name: str, carried: list[Carried]) -> str | None:
    value = carried[0].value
    made = value.of if isinstance(value, Part) else value
    layer = made.receiver if isinstance(made, Result) else None
    kind = layer.maker.rsplit(".", 1)[-1] if isinstance(layer, Result) else ""
    if len({id(c.value) for c in carried}) > 1 or not name.isidentifier():
        return None
    if kind in ("GRU", "RNN", "GRUCell", "RNNCell"):
        return insert_after(backward, f"{name} = {name}.detach()")
    if kind == "LSTM":
        return insert_after(backward, f"{name} = tuple(part.detach() for part in {name})")
    return None


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
        out, hidden = self.rnn(x, {state})
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
    filled.setdefault("state", "hidden")
    text = _PROGRAM.format(before=before, after=after, **filled)
    return script(text)


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
        own="self.memory = Memory()", memory="detach()", state="self.memory(hidden)"
    ),
}
