"""Every rank trains on the same batches."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.examples import is_loader
from traindx.analysis.program.execution.values import Answer, Instance, Result, Value, origins
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.data import (
    SEEDS,
    Feed,
    depends_on_rank,
    draws_in,
    feeds,
    is_rank,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard")
SAMPLER = "torch.utils.data.DistributedSampler"


@detector(needs=("source",), suggests=("missing-distributed-sampler",))
def check(run: Run) -> Findings:
    """A distributed training script loads its data without a distributed sampler.

    ## What it detects
    A model that is wrapped in DistributedDataParallel (or FSDP) and trained from a loader that has
    no sampler, or one of the project's own in whose order the rank has no part.

    ## Why it matters
    Every rank walks through the whole dataset. With a shared seed all ranks compute the very same
    gradients: N devices do the work of one.

    ## What to do
    `DistributedSampler(dataset)` as the loader's sampler, and `set_epoch` every epoch.

    ## When it is wrong
    Datasets that divide themselves by rank are right without it; where the rank has a part in the
    dataset, in its examples or in the seed of the order, the rule is silent. So it is where the
    loop takes its part of the batches, or an engine out of sight gets the loader.
    """
    for story in program_of(run).stories:
        wrapped = next((e for e in story.events if e.name.rsplit(".", 1)[-1] in WRAPPERS), None)
        for feed in feeds(story) if wrapped is not None else ():
            if feed.trains and wrapped is not None and _is_whole(story, feed):
                yield _finding(story, feed, wrapped)
                return


def _is_whole(story: Story, feed: Feed) -> bool:
    """Tell whether every rank reads all data in the same order."""
    sampler, example = feed.sampler, feed.example
    made = () if example is None else (*example.events, *example.order)
    if depends_on_rank(feed.dataset) or depends_on_rank(sampler) or any(map(_asks_rank, made)):
        return False
    if sampler is not None:
        is_read = isinstance(sampler, Instance) and example is not None and bool(example.order)
        own = () if example is None else tuple(draws_in(example.order))
        if not is_read or not all(_has_generator(e) for e in own):
            return False
    elif _seeds_by_rank(story) or "generator" in feed.settings:
        return False
    used = [e for run in feed.runs for e in story.events if any(x is run for x in e.loops)]
    is_seen = story.escapes(feed.loader) is Answer.NO and not _is_sampler_handed_on(story)
    return is_seen and not any(map(_takes_part, used))


def _is_sampler_handed_on(story: Story) -> bool:
    """Tell whether a distributed sampler goes elsewhere than into a loader."""
    made = [e.result for e in story.events if e.name == SAMPLER and e.result is not None]
    uses = [e for value in made for e in story.uses(value)]
    return any(e.name != ".set_epoch" and not is_loader(e.result) for e in uses)


def _asks_rank(event: ProgramEvent) -> bool:
    return any(v is not None and is_rank(v) for v in (event.result, event.receiver))


def _has_generator(event: ProgramEvent) -> bool:
    """Tell whether numbers are drawn from a generator that is seeded alike on all ranks."""
    result = event.result
    given = event.kwargs.get("generator") or event.receiver
    return isinstance(result, Result) and given is not None and not depends_on_rank(given)


def _seeds_by_rank(story: Story) -> bool:
    """Tell whether each rank shuffles for itself: `torch.manual_seed(seed + rank)`."""
    return any(
        e.name.rsplit(".", 1)[-1] in SEEDS and any(map(depends_on_rank, e.args))
        for e in story.events
    )


def _takes_part(event: ProgramEvent) -> bool:
    """`if i % world_size != rank: continue`, or `batch[rank::world_size]`, in the loop."""
    given = (g.test for g in event.guards)
    if any(_divides(test) for test in given if test is not None):
        return True
    picked = event.result
    is_picked = isinstance(picked, Result) and picked.maker == "operator.getitem"
    return is_picked and depends_on_rank(picked)


def _divides(test: Value) -> bool:
    found = (v for v in origins(test, 60) if isinstance(v, Result))
    return depends_on_rank(test) and any(v.maker == "operator.mod" for v in found)


def _finding(story: Story, feed: Feed, wrapped: ProgramEvent) -> Finding:
    idle = next((e for e in story.events if e.name == SAMPLER and e.result is not None), None)
    dataset = feed.dataset
    text = source_text(dataset) if dataset is not None and dataset.site is not None else ""
    what = "has no sampler" if feed.sampler is None else "has a sampler that ignores the rank"
    return finding(
        f"Every rank reads all of `{text or 'the dataset'}`: no distributed sampler",
        "missing-distributed-sampler",
        feed.loader,
        cite(feed.loader, f"the training loader {what}"),
        cite(wrapped, "the model is trained on several ranks"),
        *(() if idle is None else (cite(idle, "no loader gets this sampler"),)),
        is_symptom=True,
    )


_PROGRAM = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

torch.distributed.init_process_group("nccl")
model = {model}
{sampler}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader({dataset}, batch_size=32, {options})
for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


_MADE = """
sampler = torch.utils.data.DistributedSampler(data)
sampler.set_epoch(0)
"""


_ASKED = """
parser.add_argument("--local_rank")
args = parser.parse_args()
data = Rows(args.data)
"""


def _program(
    options: str, dataset: str = "data", model: str = "DDP(Net())", sampler: str = ""
) -> Run:
    text = _PROGRAM.format(options=options, dataset=dataset, model=model, sampler=sampler)
    return make_run(sources={"train.py": text})


FIRES = {
    "shuffled on every rank": _program("shuffle=True"),
    "a rank among the settings": _program("shuffle=True", sampler=_ASKED),
    "a sampler that no loader gets": _program("shuffle=True", sampler=_MADE),
}

SILENT = {
    "a sampler": _program("sampler=sampler"),
    "near miss: a sampler that somebody else is given": _program(
        "shuffle=True", sampler=_MADE + "shared.append(sampler)"
    ),
    "near miss: divided by rank": _program("shuffle=True", "data[rank::world_size]"),
    "near miss: its files are divided by rank": _program(
        "shuffle=True", sampler="files = sorted(found)[rank::world]\ndata = Rows(files)"
    ),
    "near miss: a dataset that divides itself": _program(
        "shuffle=True",
        "Part(rows)",
        sampler="class Part(list):\n    def __len__(self):\n        return 9 // get_world_size()",
    ),
    "near miss: each rank shuffles for itself": _program(
        "shuffle=True", sampler="torch.manual_seed(7 + rank)"
    ),
    "near miss: a single process": _program("shuffle=True", model="Net()"),
}
