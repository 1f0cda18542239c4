from dataclasses import replace

from traindx.analysis.errors.culprits import looked_up_table
from traindx.analysis.errors.device_messages import INDEX, allowed_indices, causes_by_tokenizer
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import failed
from traindx.registry import Findings, Run, cite_setting, detector

VOCABULARY = ("vocab_size", "n_vocab", "num_embeddings", "vocabulary_size", "ntoken", "n_tokens")


@detector(needs=("failure",), suggests=("index-out-of-range", "vocabulary-mismatch"))
def check(run: Run) -> Findings:
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
    known = known_error(run, INDEX)
    if known is None:
        return
    is_bounded = known.kind == "bounds"
    culprit = None if is_bounded else looked_up_table(run, known.failure)
    claim = known.claim(allowed=allowed_indices(known)) if is_bounded else ""
    setting = run.config.find(*VOCABULARY)
    notes = [] if setting is None else [cite_setting(setting)]
    found = finding(known, claim, culprit=culprit, notes=notes)
    yield replace(found, suggests={} if is_bounded else causes_by_tokenizer(run))


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
    "an embedding": failed(
        "IndexError: index out of range in self",
        "return self.embedding(ids).mean(dim=1)",
        sources={"model.py": _MODEL},
    ),
    "numbers": failed(
        "IndexError: index 10 is out of bounds for dimension 0 with size 10", "row = table[i]"
    ),
    "a kernel's assertion": failed(
        "DeviceAssert: ../aten/src/ATen/native/cuda/Indexing.cu:1141: indexSelectLargeIndex: "
        "block: [0,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed."
    ),
}

SILENT = {
    "near miss: a label": failed("IndexError: Target 10 is out of bounds."),
    "another error": failed("IndexError: list index out of range", "x = items[3]"),
}
