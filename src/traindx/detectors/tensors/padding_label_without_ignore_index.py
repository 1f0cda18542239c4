from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.ignored_padding import unignored_padding
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("label-out-of-range",))
def check(run: Run) -> Findings:
    """Labels hold a negative padding value that the loss takes for a class.

    ## What it detects
    `cross_entropy` or `nll_loss` over labels that were padded, filled or masked with a negative
    number, also in a collate function, where `ignore_index` is another number; by default it is
    -100.

    ## Why it matters
    A negative label is no class: the loss fails with "Target -1 is out of bounds", on a GPU with an
    assert in a place far off.

    ## What to do
    Pass `ignore_index` with the padding value, or pad with -100.

    ## When it is wrong
    Labels that are selected by a mask before the loss, or changed in any other way, are left alone.
    """
    seen: set[object] = set()
    for loss, made, value, index in unignored_padding(program_of(run)):
        if loss.node not in seen:
            seen.add(loss.node)
            yield finding(
                f"Labels are padded with {value} and the loss ignores {index}",
                (made, f"labels hold {value} here"),
                (loss, f"{value} is taken for a class: ignore_index is {index}"),
                at=loss,
            )


_program = template("""
from torch.nn.utils.rnn import pad_sequence

PAD = -1

def collate(rows):
    words, tags = zip(*rows)
    return pad_sequence(words, True), {tags:pad_sequence(tags, True, PAD)}

loader = DataLoader(rows, collate_fn=collate)
model = nn.Linear(8, 4)
loss_fn = nn.CrossEntropyLoss({options:})
for words, tags in loader:
    loss = loss_fn(model(words).flatten(0, 1), {given:tags.flatten()})
    loss.backward()
""")

FIRES = {
    "padded in a collate function": _program(),
    "masked before the loss": _program("tags", given="tags.masked_fill(mask, -1).view(-1)"),
}

SILENT = {
    "ignored": _program(options="ignore_index=PAD"),
    "padded with the default": _program("pad_sequence(tags, True, -100)"),
    "near miss: selected by a mask": _program(given="tags[tags != PAD]"),
    "near miss: padded with a class": _program("pad_sequence(tags, True)"),
    "near miss: clamped": _program(given="tags.flatten().clamp(min=0)"),
}
