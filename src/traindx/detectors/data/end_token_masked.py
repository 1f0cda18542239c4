"""The end token is the pad token, and pad tokens are masked."""

from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.token_labels import ends_ignored, ends_left_out, ends_masked
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("eos-never-trained",))
def check(run: Run) -> Findings:
    """Labels are masked where the token is the pad token, and the pad token is the end token.

    ## What it detects
    `tokenizer.pad_token = tokenizer.eos_token` in a program that puts the end token behind its
    answers and masks labels by the pad token's id: by hand, as the `ignore_index` of the loss, or
    by `DataCollatorForLanguageModeling`. Or labels masked by the id of the end token itself.

    ## Why it matters
    The end of every answer is masked together with the padding. The model never learns to stop and
    generates until the limit.

    ## What to do
    Mask by the attention mask instead, or give the tokenizer a pad token of its own.

    ## When it is wrong
    A program that adds no end token does not mean to train it, and is left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for masking in (*ends_masked(story), *ends_ignored(story), *ends_left_out(story)):
            site = masking.at.site
            if site is None or site.node in seen or masking.because is None:
                continue
            seen.add(site.node)
            is_placed = masking.because.site is not None
            because = (cite(masking.because, "the end token"),) if is_placed else ()
            yield finding(
                "The end token is masked together with the padding: the model never learns to stop",
                "eos-never-trained",
                site,
                cite(site, masking.says),
                *because,
                is_symptom=True,
            )


_PROGRAM = """
import torch
from transformers import AutoTokenizer, AutoModelForCausalLM

tokenizer = AutoTokenizer.from_pretrained("gpt2")
{pad}
model = AutoModelForCausalLM.from_pretrained("gpt2")
optimizer = torch.optim.AdamW(model.parameters())

def collate(rows):
    texts = [row["prompt"] + row["answer"]{end} for row in rows]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    labels = batch["input_ids"].clone()
    {mask}
    batch["labels"] = labels
    return batch

for batch in torch.utils.data.DataLoader(rows, 8, collate_fn=collate):
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_EOS = "tokenizer.pad_token = tokenizer.eos_token"
_MASK = "labels[labels == tokenizer.pad_token_id] = -100"


def _program(pad: str = _EOS, end: str = " + tokenizer.eos_token", mask: str = _MASK) -> Run:
    return make_run(sources={"sft.py": _PROGRAM.format(pad=pad, end=end, mask=mask)})


FIRES = {
    "masked by the id of the pad token": _program(),
    "filled": _program(mask="labels = labels.masked_fill(labels == tokenizer.pad_token_id, -100)"),
    "where": _program(
        "tokenizer.pad_token_id = tokenizer.eos_token_id",
        mask="labels = torch.where(labels == tokenizer.pad_token_id, -100, labels)",
    ),
    "masked by the id of the end token": _program(
        mask="labels[labels == tokenizer.eos_token_id] = -100", pad="pass"
    ),
    "token by token": _program(
        mask="labels = torch.tensor([[-100 if t == tokenizer.pad_token_id else t for t in row]"
        " for row in labels.tolist()])"
    ),
}

SILENT = {
    "masked by the attention mask": _program(mask='labels[batch["attention_mask"] == 0] = -100'),
    "near miss: a pad token of its own": _program(
        "tokenizer.add_special_tokens({'pad_token': 'P'})"
    ),
    "near miss: no end token is added": _program(end=""),
    "near miss: nothing is masked": _program(mask="pass"),
}
