"""Labels are padded with a number that is no class and that the loss does not ignore."""

from traindx.analysis.program.execution.values import Known, Result, Value, constant
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.tensors import whole
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

DEFAULT = -100  # the ignore_index of torch's losses
# the argument of each that says what the rest is filled with
PADS = {
    "pad_sequence": ("padding_value", 2), "full": ("fill_value", 1), "masked_fill": ("value", 2),
    "pad": ("value", 3), "full_like": ("fill_value", 1),
}  # fmt: skip


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
    for loss in program_of(run).results("cross_entropy", "nll_loss"):
        target = loss.operation.argument("target")
        ignored = loss.operation.argument("ignore_index")
        index = DEFAULT if ignored is None else constant(ignored)
        made = None if target is None else whole(loss.story, target)
        value = None if made is None else _padding(made)
        if value is None or index is None or value == index or loss.event.node in seen:
            continue
        seen.add(loss.event.node)
        assert made is not None
        yield finding(
            f"Labels are padded with {value} and the loss ignores {index}",
            "label-out-of-range",
            loss.event,
            cite(made, f"labels hold {value} here"),
            cite(loss.event, f"{value} is taken for a class: ignore_index is {index}"),
            is_symptom=True,
        )


def _padding(labels: Value) -> int | None:
    """Return the negative number that labels are padded with."""
    operation = operation_of(labels)
    name = "" if operation is None else operation.name.rsplit(".", 1)[-1]
    if operation is None or name not in PADS or not isinstance(labels, Result):
        return None
    key, position = PADS[name]
    operands = operation.operands
    given = operation.settings.get(key) or (operands[position] if operands[position:] else None)
    number = given.value if isinstance(given, Known) else None
    is_label = isinstance(number, int) and not isinstance(number, bool) and number < 0
    return number if is_label and isinstance(number, int) and labels.site is not None else None


_PROGRAM = """
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD = -1

def collate(rows):
    words, tags = zip(*rows)
    return pad_sequence(words, True), {tags}

loader = DataLoader(rows, collate_fn=collate)
model = nn.Linear(8, 4)
loss_fn = nn.CrossEntropyLoss({options})
for words, tags in loader:
    loss = loss_fn(model(words).flatten(0, 1), {given})
    loss.backward()
"""


def _program(
    tags: str = "pad_sequence(tags, True, PAD)", options: str = "", given: str = "tags.flatten()"
) -> Run:
    text = _PROGRAM.format(tags=tags, options=options, given=given)
    return make_run(sources={"train.py": text})


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
