from traindx.analysis.program.training.claims import cited, finding, program_of, source_text
from traindx.analysis.program.training.rank_shares import whole_feed
from traindx.examples import template
from traindx.registry import Findings, Run, detector


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
    stories = program_of(run).stories
    found = next((w for story in stories if (w := whole_feed(story)) is not None), None)
    if found is None:
        return
    feed, dataset = found.feed, found.feed.dataset
    text = source_text(dataset) if dataset is not None and dataset.site is not None else ""
    what = "has no sampler" if feed.sampler is None else "has a sampler that ignores the rank"
    yield finding(
        f"Every rank reads all of `{text or 'the dataset'}`: no distributed sampler",
        (feed.loader, f"the training loader {what}"),
        (found.wrapped, "the model is trained on several ranks"),
        *cited(found.idle_sampler, "no loader gets this sampler"),
    )


_program = template("""
from torch.nn.parallel import DistributedDataParallel as DDP

torch.distributed.init_process_group("nccl")
model = {model:DDP(Net())}
{sampler:}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader({dataset:data}, batch_size=32, {options})
for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
""")

_MADE = """
sampler = torch.utils.data.DistributedSampler(data)
sampler.set_epoch(0)
"""

_ASKED = """
parser.add_argument("--local_rank")
args = parser.parse_args()
data = Rows(args.data)
"""

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
    "near miss: divided by rank": _program("shuffle=True", dataset="data[rank::world_size]"),
    "near miss: its files are divided by rank": _program(
        "shuffle=True", sampler="files = sorted(found)[rank::world]\ndata = Rows(files)"
    ),
    "near miss: a dataset that divides itself": _program(
        "shuffle=True",
        dataset="Part(rows)",
        sampler="class Part(list):\n    def __len__(self):\n        return 9 // get_world_size()",
    ),
    "near miss: each rank shuffles for itself": _program(
        "shuffle=True", sampler="torch.manual_seed(7 + rank)"
    ),
    "near miss: a single process": _program("shuffle=True", model="Net()"),
}
