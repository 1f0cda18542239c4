"""The collator replaces labels that leave the prompt out."""

from traindx.analysis.program.execution.examples import Example
from traindx.analysis.program.execution.values import Result, Table, Value, constant, origins
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

COLLATOR = "DataCollatorForLanguageModeling"
IGNORED = -100


@detector(needs=("source",), suggests=("prompt-in-loss",))
def check(run: Run) -> Findings:
    """A dataset masks labels with -100 and DataCollatorForLanguageModeling makes them anew.

    ## What it detects
    A `DataCollatorForLanguageModeling(…, mlm=False)`, given to a Trainer or a data loader, over a
    dataset whose examples have `labels` of their own with positions set to −100.

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
    seen: set[object] = set()
    for story in program_of(run).stories:
        for example in story.execution.examples:
            collator, labels = _collator(example.loader), _labels(example)
            if collator is None or labels is None or collator.site is None:
                continue
            if any(map(_masks_first, origins(labels, 200))) and collator.site.node not in seen:
                seen.add(collator.site.node)
                yield _finding(collator, labels)


def _masks_first(value: Value) -> bool:
    """`[-100] * len(prompt) + answer`: what stands before the answer, and no pads behind it."""
    operation = operation_of(value)
    if operation is None or operation.name != "add" or not operation.operands:
        return False
    return any(constant(v) == IGNORED for v in origins(operation.operands[0], 4))


def _collator(loader: Value) -> Result | None:
    """The collator of language modelling that a trainer or loader is given."""
    given = loader.kwargs if isinstance(loader, Result) else {}
    made = given.get("data_collator") or given.get("collate_fn")
    is_known = isinstance(made, Result) and made.maker.rsplit(".", 1)[-1] == COLLATOR
    if not is_known or not isinstance(made, Result):
        return None
    return made if constant(made.kwargs.get("mlm")) is False else None


def _labels(example: Example) -> Value | None:
    value = example.value
    return value.fields.get("labels") if isinstance(value, Table) else None


def _finding(collator: Result, labels: Value) -> Finding:
    kept = (cite(labels, "the dataset sets labels to -100 here"),) if labels.site else ()
    return finding(
        f"{COLLATOR} replaces the dataset's labels: the masked prompt is in the loss",
        "prompt-in-loss",
        collator,
        cite(collator, f"`{source_text(collator)}` copies input_ids into labels"),
        *kept,
        is_symptom=True,
    )


_PROGRAM = """
from torch.utils.data import DataLoader, Dataset
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
_TRAINER = """trainer = Trainer(model=model, train_dataset=data, data_collator={collator})
trainer.train()"""
_LOADER = """for batch in DataLoader(data, batch_size=8, shuffle=True, collate_fn={collator}):
    model(**batch).loss.backward()
    optimizer.step()"""
_PLAIN = "DataCollatorForLanguageModeling(tokenizer, mlm=False)"


def _program(use: str, labels: str = _MASKED, collator: str = _PLAIN) -> Run:
    text = _PROGRAM.format(labels=labels, use=use.format(collator=collator))
    return make_run(sources={"train.py": text})


FIRES = {
    "given to a trainer": _program(_TRAINER),
    "given to a loader": _program(_LOADER),
}

SILENT = {
    "a collator that keeps labels": _program(
        _TRAINER, collator="DataCollatorForSeq2Seq(tokenizer)"
    ),
    "near miss: labels that mask nothing": _program(_TRAINER, '"labels": prompt + answer'),
    "near miss: only pads are masked": _program(
        _TRAINER, '"labels": prompt + answer + [-100] * (64 - len(prompt))'
    ),
    "near miss: no labels": _program(_LOADER, '"length": len(prompt)'),
}
