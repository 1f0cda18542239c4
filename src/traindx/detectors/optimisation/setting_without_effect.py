from traindx.analysis.program.training.claims import cite, each_place, finding, program_of
from traindx.analysis.program.training.configuration import late_settings, overwritten_options
from traindx.analysis.program.training.ignored_settings import ignored_settings, swallowed_settings
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("config-not-applied",))
def check(run: Run) -> Findings:
    """The configuration is changed after the model was made from it, or an option is replaced.

    ## What it detects
    A dropout rate or a size that is written into the configuration of a Transformers model after
    the model was made; and an option of the command line for the rate, the batch size, epochs or
    the like that the program replaces by a constant, without a condition. And a size or dropout
    rate that a configuration of Transformers is given under the name that another family has, or
    that a function with `**kwargs` is given under another name than its parameter's.

    ## Why it matters
    A model reads its configuration where it is made: its layers keep the old numbers, and the
    configuration shows the new ones. A replaced option makes every value that is given the same.

    ## What to do
    Change the configuration first and make the model from it, or give the setting to
    `from_pretrained`. Change the default of the option, not its value.

    ## When it is wrong
    A configuration that is changed only to be saved, or to make another model out of sight.
    """
    for found in each_place(run, ignored_settings, lambda found: found.event.node):
        yield finding(
            f"`{found.name}` is no setting of {found.family}Config: no layer reads it",
            (found.event, "the configuration keeps it as an attribute of its own"),
        )
    for swallowed in each_place(run, swallowed_settings, lambda found: found.event.node):
        yield finding(
            f"`{swallowed.name}` is dropped: the parameter is called `{swallowed.parameter}`",
            (swallowed.event, "the keyword goes into arguments that nobody reads"),
        )
    seen: set[object] = set()
    for story in program_of(run).stories:
        for event, model in late_settings(story):
            if event.node not in seen:
                seen.add(event.node)
                yield finding(
                    f"`{event.name}` is set after the model was made, and changes no layer",
                    (event, "written into the configuration here"),
                    *((cite(model, "the model read it here"),) if model.site is not None else ()),
                )
        for event in overwritten_options(story):
            if event.node not in seen:
                seen.add(event.node)
                yield finding(
                    f"The option `{event.name}` is replaced by a constant: it has no effect",
                    (event, "whatever the command line says"),
                )


_model = template("""
from transformers import AutoConfig, AutoModelForSequenceClassification, Trainer, TrainingArguments

config = AutoConfig.from_pretrained("bert-base-uncased")
{before:}
model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", config=config)
{after:}
Trainer(model=model, args=TrainingArguments("out"), train_dataset=data).train()
""")

_option = template("""
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
args = parser.parse_args()
{then}
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=args.lr)
""")

_fresh = template("""
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(n_embd=64, {settings})
model = GPT2LMHeadModel(config)
{after:}
""")

_swallowed = template("""
class Net(torch.nn.Module):
    def __init__(self, width=64, dropout=0.0, **more):
        super().__init__({handed:})
        self.layer, self.drop = torch.nn.Linear(4, width), torch.nn.Dropout(dropout)

config = {{"width": 128, "{name:}": 0.5}}
net = Net(**config)
""")

FIRES = {
    "a keyword that is swallowed": _swallowed(name="drop_out"),
    "the name of another family": _fresh("dropout=0.3"),
    "the name of another family, written": _model(before="config.dropout = 0.4"),
    "through the model": _model(after="model.config.hidden_dropout_prob = 0.4"),
    "through the configuration": _model(after="config.attention_probs_dropout_prob = 0.4"),
    "an option": _option("args.lr = 0.5"),
}
SILENT = {
    "near miss: a keyword that is handed on": _swallowed(name="drop_out", handed="**more"),
    "near miss: a keyword for others": _swallowed(name="lr"),
    "near miss: its own name": _fresh("resid_pdrop=0.3, num_hidden_layers=2"),
    "near miss: a setting of the program's own": _fresh("pooling='mean'"),
    "near miss: read by the program": _fresh(
        "dropout=0.3", "drop = torch.nn.Dropout(config.dropout)"
    ),
    "near miss: before the model": _model(before="config.hidden_dropout_prob = 0.4"),
    "near miss: read at every pass": _model(after="model.config.use_cache = False"),
    "near miss: on a condition": _option("if args.lr > 1:\n    args.lr = 1.0"),
    "near miss: computed": _option("args.lr = args.lr * 4"),
}
