from traindx.analysis.program.training.claims import cited, each_place, finding, node_of
from traindx.analysis.program.training.kept_prompts import prompts_kept
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("prompt-in-loss",))
def check(run: Run) -> Findings:
    """A dataset masks labels with -100 and DataCollatorForLanguageModeling makes them anew.

    ## What it detects
    A `DataCollatorForLanguageModeling(…, mlm=False)`, given to a Trainer or a data loader, over a
    dataset whose examples have `labels` of their own with positions set to −100. Labels that are
    compared with −100 where they should be set to it, and a mask of the answer that no loss uses.

    ## Why it matters
    That collator throws `labels` away and copies `input_ids`, leaving out only pads: the prompt,
    which the dataset had masked, is learnt as well.

    ## What to do
    `DataCollatorForSeq2Seq(tokenizer, label_pad_token_id=-100)` or `default_data_collator`, which
    keep the labels.

    ## When it is wrong
    −100 behind the answer marks pads, which the collator leaves out as well; such labels are left
    alone.
    """
    for kept in each_place(run, prompts_kept, lambda kept: node_of(kept.at)):
        yield finding(
            f"{kept.says}, so the prompt is in the loss",
            (kept.at, "this keeps the prompt in the loss"),
            *cited(kept.masked, "labels of -100"),
        )


_PROGRAM = """
from transformers import DataCollatorForLanguageModeling, DataCollatorForSeq2Seq, Trainer

class Dialogues(Dataset):
    def __init__(self, rows, tokenizer):
        self.rows, self.tokenizer = rows, tokenizer

    def __getitem__(self, i):
        prompt = self.tokenizer(self.rows[i][0])["input_ids"]
        answer = self.tokenizer(self.rows[i][1])["input_ids"]
        return {{"input_ids": prompt + answer, {labels}}}

data = Dialogues(rows, tokenizer)
{use}
"""
_MASKED = '"labels": [-100] * len(prompt) + answer'
_TRAINER = "Trainer(model=model, train_dataset=data, data_collator={collator}).train()"
_LOADER = """for batch in DataLoader(data, batch_size=8, shuffle=True, collate_fn={collator}):
    model(**batch).loss.backward()
    optimizer.step()"""
_PLAIN = "DataCollatorForLanguageModeling(tokenizer, mlm=False)"


def _program(use: str, labels: str = _MASKED, collator: str = _PLAIN) -> Run:
    return template(_PROGRAM)(labels=labels, use=use.format(collator=collator))


_by_hand = template("""
for prompt, answer in pairs:
    ids = torch.tensor(prompt + answer)
    keep = torch.tensor([0] * len(prompt) + [1] * len(answer))
    loss = F.cross_entropy(model(ids[None])[0, :-1], ids[1:]{how})
    {masked}
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""")

FIRES = {
    "a mask that is not used": _by_hand("", "pass"),
    "passed to a trainer": _program(_TRAINER),
    "passed to a loader": _program(_LOADER),
}

SILENT = {
    "near miss: a mask that is used": _by_hand(
        ", reduction='none'", "loss = (loss * keep[1:]).sum() / keep.sum()"
    ),
    "a collator that keeps labels": _program(
        _TRAINER, collator="DataCollatorForSeq2Seq(tokenizer)"
    ),
    "near miss: labels that mask nothing": _program(_TRAINER, '"labels": prompt + answer'),
    "near miss: only pads are masked": _program(
        _TRAINER, '"labels": prompt + answer + [-100] * (64 - len(prompt))'
    ),
    "near miss: no labels": _program(_LOADER, '"length": len(prompt)'),
}
