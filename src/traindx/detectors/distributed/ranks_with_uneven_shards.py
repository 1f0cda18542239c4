from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.rank_shares import uneven_shares
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("uneven-inputs",))
def check(run: Run) -> Findings:
    """Ranks of a distributed run do different numbers of steps: the last ones wait forever.

    ## What it detects
    A model in DistributedDataParallel (or FSDP) that is trained over every n-th shard or file from
    the rank on, where shards have lengths of their own, to the end of each, without `Join`, a
    bound on the number of steps, or a question among the ranks whether all have a batch.

    ## Why it matters
    Every backward waits for all ranks. The rank with more batches waits for one that is done: the
    run hangs at the end of the first epoch, or fails after the timeout.

    ## What to do
    Agree on a number of steps (the minimum over the ranks), or train inside of
    `with Join([model]):`.

    ## When it is wrong
    Shards that are all of one length and divide evenly among the ranks are right.
    """
    for story in program_of(run).stories:
        for found in uneven_shares(story):
            yield finding(
                "Each rank trains over its own shards to the end: ranks do different numbers of "
                "steps and wait for each other",
                (found.share.site, "over the shards of this rank"),
                (found.step, "every rank takes part in every step"),
            )
            return


_PROGRAM = """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

class Shards(IterableDataset):
    def __init__(self, files, rank, world):
        self.mine = {mine}

    def __iter__(self):
        for file in self.mine:
            {rows}

def main(rank, world):
    dist.init_process_group("nccl")
    net = torch.nn.Linear(8, 1)
    model = {model}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Shards(list_files(), rank, world), batch_size=32)
    for epoch in range(3):
        for step, (x, y) in enumerate({over}):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            {then}

main(dist.get_rank(), dist.get_world_size())
"""
_ROWS = "for row in read(file):\n                yield row[0], row[1]"


_USUAL = {"mine": "files[rank::world]", "over": "loader", "then": "pass", "rows": _ROWS,
          "model": "DistributedDataParallel(net)"}  # fmt: skip
_program = template(_PROGRAM, **_USUAL)
_DIRECT = _PROGRAM.replace("DataLoader(Shards(list_files(), rank, world), batch_size=32)", "None")
_DIRECT = _DIRECT.replace(
    "def main(rank",
    "def batches(files, rank, world):\n    for file in files[rank::world]:\n"
    "        for part in read(file).split(32):\n            yield part\n\ndef main(rank",
)

FIRES = {
    "a stream of the rank's own files": _program(),
    "by number": _program("[files[i] for i in range(rank, len(files), world)]"),
    "a generator": template(_DIRECT, **_USUAL)("files", over="batches(list_files(), rank, world)"),
}

_TABLES = """
import pandas
import torch.distributed as dist
from torch.utils.data import ConcatDataset
rank, world = dist.get_rank(), dist.get_world_size()
class Table(Dataset):
    def __init__(self, file):
        self.rows = {read}
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        return self.rows[i, :-1], self.rows[i, -1]
{data}
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=32{more}):
    opt.zero_grad()
    nn.functional.mse_loss(model(x).squeeze(1), y).backward()
    opt.step()
"""
_dealt = "data = ConcatDataset([Table(f) for f in files[rank::world]])"
_tables = template(
    _TABLES, read="torch.tensor(pandas.read_csv(file).to_numpy())", data=_dealt, more=""
)

FIRES |= {"tables that are dealt whole": _tables()}
SILENT = {
    "near miss: every rank has every table": _tables(
        data="data = ConcatDataset([Table(f) for f in files])"
    ),
    "near miss: a file is an example": _tables(read="PIL.Image.open(file)"),
    "near miss: one process": _program(model="net"),
    "near miss: a bound on the steps": _program(then="if step >= 100:\n                break"),
    "near miss: the ranks ask each other": _program(then="dist.all_reduce(has_more)"),
    "near miss: a row from every shard": _program(rows="yield read(file)"),
    "near miss: shards of one length": _program(
        rows="for i in range(1000):\n                yield load(file, i)"
    ),
    "near miss: all ranks read everything": _program("files"),
}
