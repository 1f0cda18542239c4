from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.hoards import kept_outputs, trainer_outputs
from traindx.examples import template
from traindx.registry import Findings, Run, Strength, detector

CAUSE = "evaluation-outputs-kept"


@detector(needs=("source",), suggests=("evaluation-outputs-kept",))
def check(run: Run) -> Findings:
    """A validation loop keeps the scores of every token or pixel of the whole data set.

    ## What it detects
    A loop over validation data that adds the outputs of the model to a list or tensor, not reduced
    and not moved to the host, where these have scores for every position: of a convolution, a model
    for segmentation or language, or flattened over their first two dimensions later. In programs
    that run on a GPU. Also a `Trainer` of
    Transformers that is given a language model and `compute_metrics`, with neither
    `preprocess_logits_for_metrics` nor `eval_accumulation_steps`.

    ## Why it matters
    Memory grows with the validation set: 2,000 sequences of 512 tokens with 50,000 classes are
    200 GB. It runs out at the end of an epoch that trained well.

    ## What to do
    Sum losses and hits batch by batch, keep `argmax` (a trainer's `preprocess_logits_for_metrics`),
    or move outputs to the host with `.cpu()` (`eval_accumulation_steps`).

    ## When it is wrong
    A validation set of a few batches fits. Outputs of one row per example are small, and are left
    alone.
    """
    for kept in each_place(run, kept_outputs, lambda kept: kept.event.node):
        forward, split = kept.evaluation.forward, kept.evaluation.split
        yield finding(
            f"The {split} loop keeps every output of {forward.text} on the device",
            (kept.event, "the full outputs of each batch are kept here"),
            (forward, "scores for every position and class"),
            strength=Strength.MODERATE,
            is_symptom=False,
        )
    for event in each_place(run, trainer_outputs, lambda event: event.node):
        yield finding(
            "The trainer keeps the logits of the whole evaluation on the device for a metric",
            (event, "compute_metrics gets the scores of every token at every position"),
            strength=Strength.MODERATE,
            is_symptom=False,
        )


_PROGRAM = """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.head = nn.Embedding(9, 8), nn.GRU(8, 8), nn.Linear(8, 50000)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.head(h)

model = Tagger().cuda()

@torch.no_grad()
def validate(val_loader):
    model.eval()
    found, targets = [], []
    for ids, tags in val_loader:
        {keep}
        targets.append(tags)
    return {score}

print(validate(val_loader))
"""
_SCORE = "nn.functional.cross_entropy(torch.cat(found).flatten(0, 1), torch.cat(targets).flatten())"
_program = template(_PROGRAM, keep="found.append(model(ids))", score=_SCORE)

_images = template("""
from accelerate import Accelerator

class Runner:
    def __init__(self, loader):
        self.accelerator = Accelerator()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 21, 1))
        self.loader = loader
        self.maps = []

    def evaluate(self):
        self.net.eval()
        with torch.inference_mode():
            for image, mask in self.loader:
                out = self.net(image).softmax(1)
                out, mask = self.accelerator.gather_for_metrics((out, mask))
                self.maps.append({what})
        return torch.cat(self.maps)

Runner(test_loader).evaluate()
""")

_TRAINER = """
def score(pair):
    return dict(accuracy=0.5)
from transformers import {model}, Trainer, TrainingArguments
model = {model}.from_pretrained("small")
arguments = TrainingArguments("out"{settings})
trainer = Trainer(model=model, args=arguments, train_dataset=a, eval_dataset=b{more})
trainer.train()
"""
_trainer = template(_TRAINER, "model", more=", compute_metrics=score", settings="")

FIRES = {
    "a trainer of a causal language model": _trainer("AutoModelForCausalLM"),
    "a trainer of a masked language model": _trainer("BertForMaskedLM"),
    "logits of every token": _program(),
    "under a name, detached": _program("out = model(ids).detach()\n        found.append(out)"),
    "maps of every pixel, gathered": _images("out"),
}

SILENT = {
    "near miss: a trainer of a classifier": _trainer("AutoModelForSequenceClassification"),
    "near miss: no metric but the loss": _trainer("AutoModelForCausalLM", ""),
    "near miss: only the best token is kept": _trainer(
        "AutoModelForCausalLM", ", compute_metrics=score, preprocess_logits_for_metrics=best"
    ),
    "near miss: moved to the host in time": _trainer(
        "AutoModelForCausalLM", settings=", eval_accumulation_steps=8"
    ),
    "near miss: a trainer without a GPU": _trainer(
        "AutoModelForCausalLM", settings=", use_cpu=True"
    ),
    "near miss: moved to the host": _program("found.append(model(ids).cpu())"),
    "near miss: the best class alone": _program("found.append(model(ids).argmax(-1))"),
    "near miss: a number for each batch": _program(
        "out = model(ids).flatten(0, 1)\n"
        "        found.append(nn.functional.cross_entropy(out, tags.flatten()).item())",
        "sum(found)",
    ),
    "near miss: one row for each example": _program(
        score="nn.functional.cross_entropy(torch.cat(found), torch.cat(targets))"
    ),
    "near miss: maps on the host": _images("out.cpu()"),
}
