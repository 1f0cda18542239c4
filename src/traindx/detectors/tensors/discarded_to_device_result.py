"""A tensor's move to the device is computed and thrown away."""

from traindx.analysis.program.execution.values import Answer
from traindx.analysis.program.training.claims import cite, finding, is_dropped, replace, source_text
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.tensors import is_tensor
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

MOVES = frozenset({".to", ".cuda"})


@detector(needs=("source",), suggests=("device-mismatch",))
def check(run: Run) -> Findings:
    """A tensor is moved to a device and the result is dropped.

    ## What it detects
    `x.to(device)` or `x.cuda()` whose result nothing keeps, where `x` is a tensor: unpacked from a
    loader with others, or computed by torch.

    ## Why it matters
    A module moves in place, a tensor does not: the call returns the moved tensor. `x` stays where
    it was, and the next operation with the model fails.

    ## What to do
    Keep the result: `x = x.to(device)`.

    ## When it is wrong
    Batches of their own class (tokenizer output, graphs) may move in place; a name that is the
    whole batch is left alone, and so is a part of it that is used as a mapping (`**enc`,
    `enc["input_ids"]`), or that a `collate_fn` makes of something else than tensors.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for event in story.events:
            if event.name not in MOVES or event.node in seen or not is_dropped(event):
                continue
            is_probe = any(guard.test is None for guard in event.guards) or event.is_tried
            is_probe = is_probe or event.is_one_of
            if is_probe or is_tensor(story, event.receiver) is not Answer.YES:
                continue
            seen.add(event.node)
            text = source_text(event)
            name = text.rpartition("." + event.name[1:] + "(")[0]
            yield finding(
                f"`{text}` moves a tensor and drops the result",
                "device-mismatch",
                event,
                cite(event, f"{name} itself stays where it is"),
                is_symptom=True,
                patch=replace(event, f"{name} = {text}") if name.isidentifier() else None,
            )


_LOOP = """
import torch

{before}
for {target} in {loader}:
    {move}
    loss = criterion(model({given}), target)
    loss.backward()
"""


def _loop(
    move: str,
    target: str = "data, target",
    *,
    given: str = "data",
    loader: str = "train_loader",
    before: str = "",
) -> Run:
    text = _LOOP.format(target=target, move=move, given=given, loader=loader, before=before)
    return make_run(sources={"train.py": text})


_COLLATE = """
def collate(rows):
    texts, labels = zip(*rows)
    return {first}, torch.tensor(labels)

train_loader = torch.utils.data.DataLoader(rows, collate_fn=collate)
"""

FIRES = {
    "a batch": _loop("data.to(device)"),
    "a batch, counted": _loop("target.cuda()", "i, (data, target)"),
    "a batch of one of several loaders": _loop("data.cuda()", loader="dataloaders[phase]"),
    "a batch, collated by torch": _loop(
        "data.to(device)", before=_COLLATE.format(first="torch.stack(texts)")
    ),
    "a tensor": make_run(sources={"t.py": "import torch\nx = torch.zeros(3)\nx.to('cuda')\n"}),
}

_ANY_MODEL = """
import torch
if options.small:
    net = Small()
else:
    net = torch.relu(data)

def train():
    net.to("cuda")

class Small(torch.nn.Module):
    pass
train()
"""

SILENT = {
    "near miss: one of several, of which one is a model": make_run(
        sources={"train.py": _ANY_MODEL}
    ),
    "kept": _loop("data = data.to(device)"),
    "near miss: a module moves in place": _loop("model.to(device)"),
    "near miss: a batch of its own class": _loop("batch.to(device)", "batch"),
    "near miss: a counted batch of its own class": _loop("batch.to(device)", "i, batch"),
    "near miss: counted by another name": _loop(
        "batch.to(device)", "count, batch", loader="enumerate(train_loader)"
    ),
    "near miss: a tokenizer's output": _loop("data.to(device)", given="**data"),
    "near miss: a graph": _loop("data.to(device)", given="data.x, data.edge_index"),
    "near miss: collated by a tokenizer": _loop(
        "data.to(device)", before=_COLLATE.format(first="tokenizer(texts)")
    ),
    "near miss: a model for each loader": _loop(
        "net.to(device)", "net, loader", loader="zip(nets, loaders)"
    ),
}
