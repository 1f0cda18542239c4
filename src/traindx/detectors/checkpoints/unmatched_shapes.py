"""A state dict's tensors had other shapes than the model's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root, shape_of

MESSAGE = re.compile(
    r"size\s+mismatch\s+for\s+([\w.]+):\s+copying\s+a\s+param(?:eter)?\s+with\s+shape\s+"
    r"(torch\.Size\(\[[\d, ]*\]\)|\S+)\s+from\s+checkpoint,\s+the\s+shape\s+in\s+current\s+"
    r"model\s+is\s+(torch\.Size\(\[[\d, ]*\]\)|\S+)"  # a terminal may have wrapped it
)
OPTIMIZER = re.compile(
    r"loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
    r"|loaded state dict has a different number of parameter groups"
)
WORDS = re.compile(r"embed|wte|tok|vocab|lm_head", re.IGNORECASE)
POSITIONS = re.compile(r"pos", re.IGNORECASE)


@detector(
    needs=("failure",),
    suggests=("state-dict-shape-mismatch", "state-dict-key-mismatch", "vocabulary-mismatch"),
)
def check(run: Run) -> Iterator[Finding]:
    """A checkpoint holds tensors of other shapes than the model, or another optimizer's state.

    ## What it detects
    "size mismatch for fc.weight: copying a param with shape …", with both shapes and the dimension
    that differs, and an optimizer state for another set of parameters.

    ## Why it matters
    The file belongs to another configuration: other classes, vocabulary, width or length.
    `strict=False` does not forgive shapes.

    ## What to do
    Build the model from the configuration saved with the file; replace the head after loading.

    ## When it is wrong
    For transfer learning the new head is meant to differ; load the rest without it.
    """
    hit = match_root(run, MESSAGE, OPTIMIZER)
    if hit is None:
        return
    failure, found = hit
    if found.re is OPTIMIZER:
        kind = "number of parameters" if "size of optimizer" in found[0] else "number of groups"
        claim = f"The saved optimizer state has another {kind} than this optimizer"
        guesses = {
            "state-dict-key-mismatch": Strength.STRONG,
            "state-dict-shape-mismatch": Strength.WEAK,
        }
        yield explain(run, failure, claim, suggests=guesses)
        return
    all_found = MESSAGE.findall(failure.message)
    name, saved, current = found[1], shape_of(found[2]), shape_of(found[3])
    more = f", and {len(all_found) - 1} more" if len(all_found) > 1 else ""
    claim = (
        f"The tensor {name} is {list(saved)} in the file and {list(current)} in the model"
        f"{_difference(name, saved, current)}{more}"
    )
    is_vocabulary = bool(WORDS.search(name)) and saved[1:] == current[1:]
    suggests = {"vocabulary-mismatch": Strength.MODERATE} if is_vocabulary else {}
    yield explain(run, failure, claim, shows="state-dict-shape-mismatch", suggests=suggests)


def _difference(name: str, saved: Sequence[int], current: Sequence[int]) -> str:
    if len(saved) != len(current):
        return ""
    if POSITIONS.search(name):
        return ": another number of positions"
    if saved[1:] == current[1:] and saved:
        what = "rows (words)" if WORDS.search(name) else "outputs (classes)"
        return f": {saved[0]} against {current[0]} {what}"
    return ": another width"


FIRES = {
    "another number of classes": make_failed_run(
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: "
        "copying a param with shape torch.Size([1000, 2048]) from checkpoint, the shape in current "
        "model is torch.Size([10, 2048]).",
        "model.load_state_dict(state)",
    ),
    "another optimizer": make_failed_run(
        "ValueError: loaded state dict contains a parameter group that doesn't match the size of "
        "optimizer's group"
    ),
}

SILENT = {
    "near miss: keys only": make_failed_run(
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "
        '"fc.weight".'
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
