from traindx.analysis.program.training.claims import each_place, finding, source_text
from traindx.analysis.program.training.growing_stores import growing_stores
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("host-memory-growth",))
def check(run: Run) -> Findings:
    """Host memory grows with every epoch, for what is kept has no bound.

    ## What it detects
    A list, made before the first epoch, that every training step adds inputs or outputs of its
    batch to; a cache without a bound (`lru_cache(maxsize=None)`, a dictionary) whose key has the
    epoch in it, so that nothing is ever found again and all is kept. Nothing is taken out.

    ## Why it matters
    Resident memory climbs epoch after epoch until the kernel kills the process, often days into
    a run that looked well.

    ## What to do
    Keep numbers in place of tensors, empty the list at the end of the epoch, leave the epoch out
    of the key, or bound the cache (`maxsize=…`, `deque(maxlen=…)`).

    ## When it is wrong
    Lists that are read once training is over are taken to be wanted; so are replay memories.
    """
    for found in each_place(run, growing_stores, lambda found: found.event.node):
        text = source_text(found.event)
        yield finding(
            f"`{text}` {found.says}, and nothing is ever let go",
            (found.event, "what is kept here grows with every epoch"),
            is_symptom=False,
        )


_program = template("""
import functools

{decorator:}
def load(index, key):
    return torch.randn(3, 32, 32)

class Images(Dataset):
    def __init__(self):
        self.epoch, self.cache = 0, dict()

    def __len__(self):
        return 1000

    def __getitem__(self, i):
        {item:return load(i, 0), i % 10}

data, kept = Images(), []
model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(50):
    data.epoch = epoch
    for x, y in DataLoader(data, batch_size=32):
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {step:pass}
    {after:pass}
{last:}
""")
_BY_EPOCH = "return load(i, self.epoch), i % 10"
_TABLE = "self.cache[{key}] = load(i, 0); return self.cache[{key}], i % 10"

FIRES = {
    "a cache by epoch": _program("@functools.lru_cache(maxsize=None)", _BY_EPOCH),
    "a table by epoch": _program(item=_TABLE.format(key="i, self.epoch")),
    "outputs of every batch": _program(step="kept.append(out.detach().cpu())"),
    "pairs of every batch": _program(step="kept.append((x.numpy(), epoch))"),
}
SILENT = {
    "near miss: a cache by example": _program("@functools.lru_cache(maxsize=None)"),
    "near miss: a bounded cache": _program("@functools.lru_cache(maxsize=512)", _BY_EPOCH),
    "near miss: a table by example": _program(item=_TABLE.format(key="i")),
    "near miss: a table that is emptied": _program(
        item=_TABLE.format(key="i, self.epoch"), after="data.cache.clear()"
    ),
    "near miss: numbers of every batch": _program(step="kept.append(loss.item())"),
    "near miss: emptied after the epoch": _program(
        step="kept.append(out.detach())", after="kept.clear()"
    ),
    "near miss: read when training is over": _program(
        step="kept.append(out.detach())", last="torch.save(torch.cat(kept), 'outputs.pt')"
    ),
}
