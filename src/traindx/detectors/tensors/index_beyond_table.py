"""An index lay outside of the table it looked up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Evidence, Finding, Strength, cite_setting
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import (
    Culprit,
    embedding_tables,
    explain,
    make_failed_run,
    match_root,
    site_of,
)

SELF = re.compile(
    r"^index out of range(?: in self)?|index out of range: Tried to access index (\d+)"
)
BOUNDS = re.compile(
    r"index (-?\d+) is out of bounds for (?:dimension|axis) (-?\d+) with size (\d+)"
)
ASSERTED = re.compile(
    r"srcIndex < srcSelectDimSize|indexSelectLargeIndex|indexSelectSmallIndex|index out of bounds"
    r"|idx_dim >= 0 && idx_dim < index_size|vectorized_gather|indexValue >= 0"
    r"|index >= -sizes\[i\] && index < sizes\[i\]|ind >= 0 && ind < ind_dim_size"
)
VOCABULARY = ("vocab_size", "n_vocab", "num_embeddings", "vocabulary_size", "ntoken", "n_tokens")


@detector(needs=("failure",), suggests=("index-out-of-range", "vocabulary-mismatch"))
def check(run: Run) -> Iterator[Finding]:
    """A lookup gets an index that its table does not have.

    ## What it detects
    "index out of range in self" of an embedding, "index 10 is out of bounds for dimension 0 with
    size 10", and the assertions of the CUDA kernels that do the same lookup. With the source, the
    table and its size.

    ## Why it matters
    Only some batches hold such an index, so the error comes and goes with the order of the data.

    ## What to do
    Check the ids where they are made: `assert 0 <= ids.min() and ids.max() < table.num_embeddings`
    over all splits. Forcing them into range would train on wrong rows.

    ## When it is wrong
    The index may be right and the table too small: a tokenizer with added tokens, or a sequence
    longer than the position table.
    """
    hit = match_root(run, BOUNDS, SELF, ASSERTED)
    if hit is None:
        return
    failure, found = hit
    culprit = _culprit(run, failure) if found.re is not BOUNDS else None
    suggests = {} if found.re is BOUNDS else _vocabulary(run)
    yield explain(
        run,
        failure,
        _claim(found, culprit),
        shows="index-out-of-range",
        suggests=suggests,
        culprit=culprit,
        notes=_notes(run),
    )


def _claim(found: re.Match[str], culprit: Culprit | None) -> str:
    if found.re is BOUNDS:
        index, size = int(found[1]), int(found[3])
        allowed = f"0 … {size - 1}" if size else "nothing, it is empty"
        near = (
            " (one too far: ids that start at 1, or a size one too small)" if index == size else ""
        )
        return (
            f"Index {index} is looked up in a dimension of size {size}, allowed is {allowed}{near}"
        )
    where = "on the GPU " if found.re is ASSERTED else ""
    table = f": {culprit.says}" if culprit is not None else ""
    return f"A lookup {where}gets an index that its table does not have{table}"


def _culprit(run: Run, failure: Failure) -> Culprit | None:
    """The table that the failing line looks up, or the only one."""
    site = site_of(run, failure)
    line = ast.unparse(site.node) if site is not None else ""
    tables = embedding_tables(project_of(run))
    for module, call, rows in tables:
        target = module.parents.get(call)
        name = ast.unparse(target.targets[0]) if isinstance(target, ast.Assign) else ""
        if len(tables) == 1 or (name and name in line):
            return Culprit(module, call, f"{name or 'the table'} has {rows} rows, counted from 0")
    return None


def _vocabulary(run: Run) -> dict[str, Strength]:
    """A tokenizer in the run makes its size against the table's the likely reason."""
    has_tokenizer = any("okenizer" in s.text for s in run.sources)
    is_known = has_tokenizer or run.config.find("tokenizer", "tokenizer_name") is not None
    return {"vocabulary-mismatch": Strength.MODERATE} if is_known else {}


def _notes(run: Run) -> list[Evidence]:
    setting = run.config.find(*VOCABULARY)
    return [cite_setting(setting)] if setting is not None else []


_MODEL = """
from torch import nn

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10000, 128)

    def forward(self, ids):
        return self.embedding(ids).mean(dim=1)
"""

FIRES = {
    "an embedding": make_failed_run(
        "IndexError: index out of range in self",
        "return self.embedding(ids).mean(dim=1)",
        sources={"model.py": _MODEL},
    ),
    "numbers": make_failed_run(
        "IndexError: index 10 is out of bounds for dimension 0 with size 10", "row = table[i]"
    ),
    "a kernel's assertion": make_failed_run(
        "DeviceAssert: ../aten/src/ATen/native/cuda/Indexing.cu:1141: indexSelectLargeIndex: "
        "block: [0,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed."
    ),
}

SILENT = {
    "near miss: a label": make_failed_run("IndexError: Target 10 is out of bounds."),
    "another error": make_failed_run("IndexError: list index out of range", "x = items[3]"),
}
