import re

from traindx.analysis.recordings.crashes import are_tokens, failed_lookup, name_in_own_code
from traindx.analysis.recordings.observations import (
    cite_kept_batch,
    own_place,
    place_words,
    processes_of,
    summary_words,
)
from traindx.examples import recorded
from traindx.model.recording import Caught, Place, Process, Summary
from traindx.registry import Finding, Findings, Run, cite_record, detector, finding

CAUSE = "index-out-of-range"
TOKENS = "vocabulary-mismatch"
FIRST_STEPS = 3  # where the table lacks rows of the vocabulary, the first batches show it
LOOKUP = re.compile(
    r"^index out of range(?: in self)?|is out of bounds for dimension|index out of bounds"
    r"|srcIndex < srcSelectDimSize|device-side assert"
)


@detector(needs=("recording",), suggests=(CAUSE, TOKENS))
def check(run: Run) -> Findings:
    """A lookup failed, and the recorder saw an index that its table does not have.

    ## What it detects
    The error of an embedding together with the tensors of its frame: the rows of the table, the
    smallest and the largest index, the name that the tensor has in the user's code, and the batch,
    which is kept. Where the indices are sequences that the model was given, and one is too large
    in the very first batches, the table has fewer rows than the vocabulary has tokens.

    ## Why it matters
    Only some batches hold such an index, so the error comes and goes with the order of the data.
    The kept batch fails every time.

    ## What to do
    Check the ids where they are made: `assert 0 <= ids.min() and ids.max() < table.num_embeddings`
    over all splits. Forcing them into range would train on wrong rows.

    ## When it is wrong
    The index may be right and the table too small: a tokenizer with added tokens, or a sequence
    longer than the position table.
    """
    for process in processes_of(run):
        for caught in process.caught:
            found = failed_lookup(caught) if LOOKUP.search(caught.message) else None
            if found is not None:
                yield _finding(process, caught, *found)
                return


def _finding(process: Process, caught: Caught, ids: Summary, rows: int) -> Finding:
    place = own_place(caught.places)
    name = name_in_own_code(caught, ids)
    table = next((f"{n} " for n, kind, _ in reversed(caught.modules) if "Embedding" in kind), "")
    is_high = ids.high >= rows
    index = int(ids.high if is_high else ids.low)
    which = "largest" if is_high else "smallest"
    near = " (off by one)" if index == rows else ""
    says = f"{name or 'the index tensor'} is {summary_words(ids)}; embedding {table}has {rows} rows"
    cited = cite_record(process, caught.line, says, step=caught.step, index=index, rows=rows)
    claim = (
        f"Index out of range: the {which} index in {name or 'the lookup'} is {index}, but "
        f"embedding {table}has {rows} rows{near}{place_words(place)}"
    )
    is_usual = caught.step <= FIRST_STEPS  # a rare token is an example's fault, not the table's
    cause = TOKENS if is_high and is_usual and are_tokens(caught, ids) else CAUSE
    return finding(claim, cause, cited, *cite_kept_batch(process, caught), place=place)


def _run(
    high: float,
    message: str = "index out of range in self",
    whole: tuple[int, ...] = (8, 9),
    step: int = 7,
) -> Run:
    def ids(name: str) -> Summary:
        return Summary(name, (8, 12), "int64", "cpu", 0.0, high, 9.0, 4.0)

    table = Summary("weight", (50, 16), "float32", "cpu", -3.0, 3.0, 0.0, 1.0)
    caught = Caught(
        12, "IndexError", message, step, places=(Place("train.py", 20, "forward", "self.emb(x)"),),
        tensors=(
            ("embedding, line 2552", ids("input")), ("embedding, line 2552", table),
            ("forward, line 20", ids("x")),
        ),
        modules=(("", "Tagger", (whole,)), ("emb", "Embedding", ((8, 12),))),
        kept="incidents/caught-7",
    )  # fmt: skip
    return recorded(Process(caught=(caught,)))


_NO_TABLE = Caught(12, "IndexError", "index out of range in self", 7)

FIRES = {
    "one too far": _run(50.0),
    "far beyond": _run(61.0),
    "tokens that the model was given": _run(61.0, whole=(8, 12), step=0),
    "a token that is rare": _run(61.0, whole=(8, 12)),
}

SILENT = {
    "near miss: the index fits, another lookup failed": _run(49.0),
    "near miss: a label": _run(50.0, "Target 10 is out of bounds."),
    "near miss: no tensors were seen": recorded(Process(caught=(_NO_TABLE,))),
    "no error": recorded(Process()),
}
