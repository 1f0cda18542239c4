from traindx.analysis.program.training.claims import finding, node_of, program_of, source_text
from traindx.analysis.program.training.double_shifts import double_shifts
from traindx.analysis.program.training.program import each_place
from traindx.analysis.program.training.twin_slices import twin_slices
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("misaligned-labels",))
def check(run: Run) -> Findings:
    """A target is not shifted against its input, or twice.

    ## What it detects
    A cross-entropy whose target is the same slice of the same data as the input of the model that
    it judges: `x = data[i : i + n]` and `y = data[i : i + n]`. Where no loss is in sight, two such
    slices of which one is named like a target. Also `labels` that are shifted by one already, for
    a causal language model of transformers, which shifts them itself.

    ## Why it matters
    A model of sequences is to predict what comes next. Here the answer is the input itself: the
    loss falls to nothing, or, if it is so in validation only, rises without end.

    ## What to do
    Move the target by one: `y = data[i + 1 : i + 1 + n]`.

    ## When it is wrong
    An autoencoder's target is its input; code that says so is left alone. So is code that moves or
    masks one of the two later (`targets[:, 1:]` in the loss, a masked input), and `labels` for a
    model that moves them itself, as those of transformers do.
    """
    for given, wanted in twin_slices(program_of(run)):
        names = wanted.called("the target"), given.called("the input")
        yield finding(
            f"`{names[0]}` is the same slice as `{names[1]}`: it is not shifted by one",
            (given, f"input: `{source_text(given)}`"),
            (wanted, f"target: `{source_text(wanted)}`"),
            at=wanted,
        )
    for given, wanted in each_place(run, double_shifts, lambda pair: node_of(pair[1])):
        yield finding(
            "The labels are shifted by one, and the model shifts them once more",
            (wanted, f"labels: `{source_text(wanted)}`, one after the input"),
            (given, "goes to a model of transformers, whose loss shifts the labels itself"),
            at=wanted,
        )


_PROGRAM = """
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(0, 1000, 24):
    x = data[:, i : i + 24]
    {name} = {value}
    {then}
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""
_LOSS = "F.cross_entropy(model(x).flatten(0, 1), y.flatten())"
_program = template(_PROGRAM, value="", name="y", then="pass", loss=_LOSS)
_SAME = "data[:, i : i + 24]"

FIRES = {
    "the same slice": _program(_SAME),
    "the same slice, moved to the device": _program(_SAME, then="x, y = x.cuda(), y.cuda()"),
    "in one of two branches": script("""
def get_batch(split, i):
    if split == "val":
        x = val[i : i + 24]
        y = val[i : i + 24]
    else:
        x = train[i : i + 24]
        y = train[i + 1 : i + 25]
    return x, y
"""),
}

SILENT = {
    "moved by one": _program("data[:, i + 1 : i + 25]"),
    "near miss: of other data": _program("answers[:, i : i + 24]"),
    "near miss: a second view": _program(_SAME, "x2", loss=_LOSS.replace("y.", "x2.")),
    "near miss: moved in the loss": _program(
        _SAME,
        loss="nn.functional.cross_entropy(model(x)[:, :-1].flatten(0, 1), y[:, 1:].flatten())",
    ),
    "near miss: a masked input": _program(
        _SAME, then="hide = torch.rand(x.shape) < 0.15; x = x.masked_fill(hide, 0); y[~hide] = -100"
    ),
    "near miss: masked by a function": _program(_SAME, then="x = mask_tokens(x)"),
    "near miss: noise is added": _program(_SAME, loss="nn.functional.mse_loss(model(x + e), y)"),
    "near miss: a model that moves them": _program(_SAME, loss="model(x, labels=y).loss"),
    "near miss: an autoencoder": _program(_SAME, then="reconstruction = model(x)"),
}
