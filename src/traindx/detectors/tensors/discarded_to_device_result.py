from traindx.analysis.program.training.claims import each_place, finding, replace, source_text
from traindx.analysis.program.training.tensors import dropped_moves
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


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
    for event in each_place(run, dropped_moves, lambda found: found.node):
        text = source_text(event)
        name = text.rpartition("." + event.name[1:] + "(")[0]
        yield finding(
            f"`{text}` moves a tensor and drops the result",
            (event, f"{name} itself stays where it is"),
            patch=replace(event, f"{name} = {text}") if name.isidentifier() else None,
        )


_loop = template("""
{before:}
for {target:data, target} in {loader:train_loader}:
    {move:}
    loss = criterion(model({given:data}), target)
    loss.backward()
""")
_COLLATE = """
def collate(rows):
    texts, labels = zip(*rows)
    return {first}, torch.tensor(labels)

train_loader = torch.utils.data.DataLoader(rows, collate_fn=collate)
"""

FIRES = {
    "a batch": _loop(move="data.to(device)"),
    "a batch, counted": _loop(move="target.cuda()", target="i, (data, target)"),
    "a batch of one of several loaders": _loop(move="data.cuda()", loader="dataloaders[phase]"),
    "a batch, collated by torch": _loop(
        move="data.to(device)", before=_COLLATE.format(first="torch.stack(texts)")
    ),
    "a tensor": script("import torch\nx = torch.zeros(3)\nx.to('cuda')\n"),
}

SILENT = {
    "near miss: one of several, of which one is a model": script("""
if options.small:
    net = Small()
else:
    net = torch.relu(data)

def train():
    net.to("cuda")

class Small(torch.nn.Module):
    pass
train()
"""),
    "kept": _loop(move="data = data.to(device)"),
    "near miss: a module moves in place": _loop(move="model.to(device)"),
    "near miss: a batch of its own class": _loop(move="batch.to(device)", target="batch"),
    "near miss: a counted batch of its own class": _loop(
        move="batch.to(device)", target="i, batch"
    ),
    "near miss: counted by another name": _loop(
        move="batch.to(device)", target="count, batch", loader="enumerate(train_loader)"
    ),
    "near miss: a tokenizer's output": _loop(move="data.to(device)", given="**data"),
    "near miss: a graph": _loop(move="data.to(device)", given="data.x, data.edge_index"),
    "near miss: collated by a tokenizer": _loop(
        move="data.to(device)", before=_COLLATE.format(first="tokenizer(texts)")
    ),
    "near miss: a model for each loader": _loop(
        move="net.to(device)", target="net, loader", loader="zip(nets, loaders)"
    ),
}
