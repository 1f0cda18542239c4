from traindx.analysis.program.training.claims import each_place, finding, node_of
from traindx.analysis.program.training.padded_metrics import padded_metrics
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Findings:
    """Token accuracy counts padding that is labelled -100 as errors.

    ## What it detects
    Predicted classes that are compared with labels of which some are -100, where the mean is taken
    over all positions or matches are divided by the number of all labels: in a `compute_metrics` of
    Transformers, or in a loop of one's own.

    ## Why it matters
    No class is -100, so every padded position counts as wrong: the accuracy is at most the share of
    real tokens, and changes with the lengths in a batch.

    ## What to do
    Leave them out: `mask = labels != -100`, then `(guess == labels)[mask].mean()`.

    ## When it is wrong
    Labels that the program compares with a bound, or chooses among, are left alone.
    """
    for found in each_place(run, padded_metrics, lambda found: node_of(found.compared)):
        yield finding(
            f"The accuracy counts labels of {found.mark}, which are padding, as errors",
            (found.compared, f"no prediction equals {found.mark}"),
        )


_program = template("""
from torch.nn.utils.rnn import pad_sequence

def collate(rows):
    x, y = zip(*rows)
    return pad_sequence(x), pad_sequence(y, padding_value={pad:-100})

model = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 5))
right = count = 0
with torch.no_grad():
    for x, y in DataLoader(rows, batch_size=8, collate_fn=collate):
        guess = model(x).argmax(-1)
        {measure:print((guess == y).float().mean())}
""")
_trainer = template("""
import numpy as np
from transformers import DataCollatorForTokenClassification, Trainer

def scores(pair):
    logits, labels = pair
    guess = np.argmax(logits, axis=-1)
    {mask:pass}
    return {{"accuracy": (guess == labels).mean()}}
trainer = Trainer(
    model, args, train_dataset=train, eval_dataset=val, compute_metrics=scores,
    data_collator={collator:DataCollatorForTokenClassification(tokenizer)},
)
trainer.train()
""")

FIRES = {
    "a mean over padded labels": _program(),
    "matches over all labels": _program(
        measure="right += (guess == y).sum().item(); count += y.numel()"
    ),
    "a metric of Transformers": _trainer(),
}

SILENT = {
    "near miss: masked": _program(
        measure="keep = y != -100; print((guess[keep] == y[keep]).float().mean())"
    ),
    "near miss: counted where they are real": _program(
        measure="right += (guess == y).sum().item(); count += (y >= 0).sum().item()"
    ),
    "near miss: no padding of labels": _trainer(collator="None"),
    "near miss: a masked metric of Transformers": _trainer(
        "guess, labels = guess[labels != -100], labels[labels != -100]"
    ),
}
