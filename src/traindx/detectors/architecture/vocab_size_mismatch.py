import re

from traindx.examples import make_run
from traindx.model.run import Architecture, Tensor, as_number
from traindx.registry import Evidence, Findings, Run, Strength, cite_setting, detector, finding

VOCABULARIES = ("vocab_size", "n_vocab", "vocabulary_size", "num_tokens", "tokenizer_vocab_size")
TABLE = re.compile(r"(?:^|\.)(?:wte|tok_embeddings|embed_tokens|word_embeddings?|token_embedding)")


@detector(needs=("architecture", "config"), suggests=("vocabulary-mismatch",))
def check(run: Run) -> Findings:
    """The token embedding has fewer rows than the configured vocabulary.

    ## What it detects
    A token table in a checkpoint with fewer rows than `vocab_size` in the config.

    ## Why it matters
    Token numbers beyond the table raise an index error, or a device-side assert on a GPU.

    ## What to do
    Resize the table to the tokenizer (`model.resize_token_embeddings(len(tokenizer))`) before
    training.

    ## When it is wrong
    A table with a few more rows than the vocabulary is padded for speed and is left alone; so is
    one whose config belongs to another model.
    """
    setting = run.config.find(*VOCABULARIES)
    wanted = as_number(setting.value) if setting is not None else None
    if run.architecture is None or setting is None or not wanted or wanted < 100:
        return
    for tensor in run.architecture.tensors:
        if not TABLE.search(tensor.name) or len(tensor.shape) != 2:
            continue
        rows = tensor.shape[0]
        if rows >= wanted:
            return
        says = f"{tensor.name} has {rows:,} rows"
        yield finding(
            f"The token embedding has {rows:} rows for a vocabulary of {wanted:,.0f}",
            {"vocabulary-mismatch": Strength.STRONG},
            Evidence(says, run.architecture.artifact, tensor.name, values={"rows": rows}),
            cite_setting(setting),
            is_symptom=False,
        )
        return


def _run(rows: int, vocabulary: int) -> Run:
    table = Tensor("transformer.wte.weight", (rows, 64))
    return make_run(
        architecture=Architecture((table,), "model.pt"), config={"vocab_size": vocabulary}
    )


FIRES = {"special tokens were added": _run(50257, 50260)}

SILENT = {
    "as configured": _run(50257, 50257),
    "near miss: padded to a multiple of 64": _run(50304, 50257),
}
