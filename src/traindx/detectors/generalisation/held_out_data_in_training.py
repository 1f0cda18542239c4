from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.splits import Overlap, overlaps, redrawn_parts, shared_data
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("data-leakage",))
def check(run: Run) -> Findings:
    """The training loader reads data that a held-out loader reads, too.

    ## What it detects
    A loader for training and one for validation or testing, where the training loader reads the
    held-out dataset itself, a join of it with others (`ConcatDataset`, `train_set + test_set`,
    concatenated tensors), or the whole that the held-out dataset was split from; and two slices of
    one whole, for training and for testing, whose bounds overlap or that two random draws decide.

    ## Why it matters
    The model has seen what it is tested on. The metric is that of the training data, and says
    nothing about new data.

    ## What to do
    Train on the training part alone; augment it by data that no held-out set holds.

    ## When it is wrong
    After a choice is made on validation data, training on both is common; then the validation
    metric of that last training means nothing, while the test set is untouched. A program that
    makes several training loaders, or one more held-out loader of other data, is left alone.
    """
    for story in program_of(run).stories:
        for overlap in (*overlaps(story), *redrawn_parts(story)):
            yield _overlapping(overlap)
            return
        found = shared_data(story)
        if found is not None:
            train, held, shared = found
            name = shared.called("the held-out data")
            yield finding(
                f"`{train.name}` reads `{name}`, on which `{held.name}` tests",
                (train.loader, f"`{name}` is among the training data here"),
                (held.loader, "and is held out here"),
            )
            return


def _overlapping(found: Overlap) -> Finding:
    first, second = "one part ends here", "and the other begins before that"
    if found.shared is None:
        first, second = "one part is drawn here", "and the other by another random order"
    return finding(
        f"Training and held-out data are cut so that {found.shared or 'many'} examples are in both",
        (found.head, first),
        (found.tail, second),
        at=found.tail,
    )


_program = template("""
from torch.utils.data import ConcatDataset, DataLoader, random_split

train_set, test_set = random_split(dataset, [0.9, 0.1])
{made:}
train_loader = DataLoader({train}, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=32)
""")

_cut = template("""
order = torch.randperm(1000)
train_index, val_index = order[:{end}], order[{start}:]
""")

_redrawn = template("""
n = 1000
torch.manual_seed(0)
order = torch.randperm(n)
train_index = order[:800]
{again}
val_index = order[800:]
""")

FIRES = {
    "slices that overlap": _cut("800", "700"),
    "by two random orders": _redrawn("order = torch.randperm(n)"),
    "by two random splits": _program(
        "train_part", "train_part, _ = random_split(dataset, [0.8, 0.2])"
    ),
    "joined": _program("ConcatDataset([train_set, test_set])"),
    "added": _program("train_set + test_set"),
    "under a name": _program("everything", "everything = ConcatDataset([train_set, test_set])"),
}

SILENT = {
    "near miss: by one random order": _redrawn(""),
    "near miss: by two orders of one seed": _redrawn(
        "torch.manual_seed(0); order = torch.randperm(n)"
    ),
    "near miss: a part of the training data is scored beside the test data": _program(
        "train_set",
        "from torch.utils.data import Subset\n"
        "val_loader = DataLoader(Subset(train_set, range(100)), batch_size=32)",
    ),
    "near miss: slices side by side": _cut("800", "800"),
    "near miss: with a gap": _cut("700", "800"),
    "near miss: bounds out of sight": _cut("n", "m"),
    "apart": _program("train_set"),
    "near miss: joined with more training data": _program("ConcatDataset([train_set, extra_set])"),
    "near miss: joined for another purpose": _program(
        "train_set", "mean = compute_mean(ConcatDataset([train_set, test_set]))"
    ),
}
