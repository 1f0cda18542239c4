"""A setting is written where nothing reads it any more, or over what the user gave."""

from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.configuration import late_settings, overwritten_options
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

CAUSE = "config-not-applied"


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The configuration is changed after the model was made from it, or an option is replaced.

    ## What it detects
    A dropout rate or a size that is written into the configuration of a Transformers model after
    the model was made; and an option of the command line for the rate, the batch size, epochs or
    the like that the program replaces by a constant, without a condition.

    ## Why it matters
    A model reads its configuration where it is made: its layers keep the old numbers, and the
    configuration shows the new ones. A replaced option makes every value that is given the same.

    ## What to do
    Change the configuration first and make the model from it, or give the setting to
    `from_pretrained`. Change the default of the option, not its value.

    ## When it is wrong
    A configuration that is changed only to be saved, or to make another model out of sight.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for event, model in late_settings(story):
            if event.node not in seen:
                seen.add(event.node)
                yield finding(
                    f"`{event.name}` is set after the model was made, and changes no layer",
                    CAUSE,
                    event,
                    cite(event, "written into the configuration here"),
                    *((cite(model, "the model read it here"),) if model.site is not None else ()),
                    is_symptom=True,
                )
        for event in overwritten_options(story):
            if event.node not in seen:
                seen.add(event.node)
                yield finding(
                    f"The option `{event.name}` is replaced by a constant: it has no effect",
                    CAUSE,
                    event,
                    cite(event, "whatever the command line says"),
                    is_symptom=True,
                )


_MODEL = """
from transformers import AutoConfig, AutoModelForSequenceClassification, Trainer, TrainingArguments

config = AutoConfig.from_pretrained("bert-base-uncased")
{before}
model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", config=config)
{after}
Trainer(model=model, args=TrainingArguments("out"), train_dataset=data).train()
"""


def _model(before: str = "", after: str = "") -> Run:
    return make_run(sources={"train.py": _MODEL.format(before=before, after=after)})


_OPTION = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
args = parser.parse_args()
{then}
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=args.lr)
"""


def _option(then: str) -> Run:
    return make_run(sources={"train.py": _OPTION.format(then=then)})


FIRES = {
    "through the model": _model(after="model.config.hidden_dropout_prob = 0.4"),
    "through the configuration": _model(after="config.attention_probs_dropout_prob = 0.4"),
    "an option": _option("args.lr = 0.5"),
}
SILENT = {
    "near miss: before the model": _model(before="config.hidden_dropout_prob = 0.4"),
    "near miss: read at every pass": _model(after="model.config.use_cache = False"),
    "near miss: on a condition": _option("if args.lr > 1:\n    args.lr = 1.0"),
    "near miss: computed": _option("args.lr = args.lr * 4"),
}
