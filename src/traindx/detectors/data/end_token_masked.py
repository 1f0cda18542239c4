from traindx.analysis.program.training.claims import cited, each_place, finding, node_of
from traindx.analysis.program.training.token_labels import untrained_ends
from traindx.examples import template
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
    for found in each_place(run, untrained_ends, lambda found: node_of(found.at)):
        yield finding(
            "The end token is masked together with the padding: the model never learns to stop",
            (found.at, found.says),
            *cited(found.because, "the end token"),
        )


_PROGRAM = """
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
_program = template(_PROGRAM, pad=_EOS, end=" + tokenizer.eos_token", mask=_MASK)

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
