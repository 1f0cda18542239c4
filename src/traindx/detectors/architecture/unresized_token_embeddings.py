from traindx.analysis.errors.passed_lines import unless_passed
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import finding, line_of, program_of
from traindx.analysis.program.training.vocabularies import UnresizedTable, unresized_tables
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("vocabulary-mismatch",))
def check(run: Run) -> Findings:
    """New tokens have no row in the embedding table of the model.

    ## What it detects
    A tokenizer of Transformers that gets new tokens, and a model of the same checkpoint, or one
    that is made for `tokenizer.vocab_size`, which does not count them, whose token embeddings are
    never resized.

    ## Why it matters
    The first new token fails with "index out of range in self", on a GPU with a device-side assert
    in a place far off.

    ## What to do
    Call `model.resize_token_embeddings(len(tokenizer))` after both are loaded, or use `len` of the
    tokenizer where the model is built.

    ## When it is wrong
    Tokens that the tokenizer may have from the beginning, a checkpoint in a folder, which may hold
    them already, and a model that goes out of sight are left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in unresized_tables(story):
            if found.added.node not in seen and not is_test_file(found.added.module):
                seen.add(found.added.node)
                fed = story.does(Do.FORWARD)[:1]  # the first text may hold such a token
                line = line_of(fed[0]) if fed else None
                yield from unless_passed(run, _finding(found), line)


def _finding(found: UnresizedTable) -> Finding:
    token = found.tokens[0]
    return finding(
        f"The tokenizer gets new tokens such as {token} and the model's embeddings are not resized",
        (found.added, "tokens are added here"),
        (found.model, "the table has no row for them"),
        at=found.model,
    )


_TUNE = """
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel
from transformers import PreTrainedTokenizerFast

name = {name:"gpt2"}
tokenizer = {tokenizer:AutoTokenizer.from_pretrained(name)}
tokenizer.{add:add_tokens(["<|user|>", "<|bot|>"])}
model = {model}
{then:}
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
for text in texts:
    batch = tokenizer(text, return_tensors="pt")
    model(**batch, labels=batch["input_ids"]).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_LOADED = "AutoModelForCausalLM.from_pretrained(name)"
_FRESH = "GPT2LMHeadModel(GPT2Config(vocab_size={size}))"

_OWN = "PreTrainedTokenizerFast(tokenizer_object=words, eos_token='<eos>')"
_OLD_SIZE = _FRESH.format(size="tokenizer.vocab_size")

_tune = template(_TUNE, model=_LOADED)  # fmt: skip

FIRES = {
    "tokens of a dialogue": _tune(),
    "a token to pad with": _tune(add='add_special_tokens({"pad_token": "[PAD]"})'),
    "a new model for the old size": _tune(model=_OLD_SIZE),
    "a tokenizer of one's own": _tune(model=_OLD_SIZE, tokenizer=_OWN),
}

SILENT = {
    "resized": _tune(then="model.resize_token_embeddings(len(tokenizer))"),
    "near miss: a new model for all tokens": _tune(model=_FRESH.format(size="len(tokenizer)")),
    "near miss: a token that the tokenizer was made with": _tune(
        add='add_special_tokens({"eos_token": "<eos>"})', model=_OLD_SIZE, tokenizer=_OWN
    ),
    "near miss: padded with the end of a text": _tune(
        add='add_special_tokens({"pad_token": tokenizer.eos_token})'
    ),
    "near miss: a token that BERT has": _tune(
        add='add_special_tokens({"pad_token": "[PAD]"})', name='"bert-base-uncased"'
    ),
    "near miss: a folder of one's own": _tune(name='"./out/checkpoint-500"'),
}
