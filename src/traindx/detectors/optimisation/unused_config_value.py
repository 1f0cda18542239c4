from traindx.analysis.program.execution.values import constant
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.configuration import (
    is_read,
    is_written_down,
    missed_settings,
    optimizers_without,
    settings_of,
    used_by_optimizers,
    written_defaults,
)
from traindx.analysis.program.training.program import Program, each_place, program_of
from traindx.examples import make_run, script, template
from traindx.registry import Findings, Run, detector

NAMES = {"learning rate": ("lr", "learning_rate"), "weight decay": ("weight_decay",)}
CAUSE = "config-not-applied"


@detector(needs=("source",), suggests=("config-not-applied",))
def check(run: Run) -> Findings:
    """The configured learning rate or weight decay is never read, and the code has another one.

    ## What it detects
    An option of the command line, an entry of a dictionary, a constant or a field of a dataclass
    that is named for the learning rate or the weight decay, which no line of the project reads,
    while every optimizer is made with a number of its own that differs from it. A setting that is
    asked for under a name that the configuration has not, so that a default is used, while the
    configuration gives it under another name (`lr` and `learning_rate`) that nothing reads. And a
    learning rate that is written into `optimizer.defaults`, which the groups of parameters do not
    read.

    ## Why it matters
    Whoever changes the setting changes nothing, and judges the run by a value that was not used.

    ## What to do
    Give the optimizer the setting: `lr=args.lr`.

    ## When it is wrong
    Where the whole configuration is handed to code out of sight, that may read it; then nothing is
    said. Nor is it where both numbers are equal.
    """
    program = program_of(run)
    for words, names in NAMES.items():
        yield from _unread(program, words, names)
    yield from _never_given(program)
    for store in each_place(run, written_defaults, lambda store: store.node):
        claim = (
            f"`{source_text(store)}` is not read: the optimizer keeps the value it was made with"
        )
        filled = cite(store, "the groups of parameters were filled when the optimizer was made")
        yield finding(claim, filled, at=store)
    missed = {m.event.node: m for story in program.stories for m in missed_settings(story)}
    for found in missed.values():
        yield finding(
            f"The configuration sets {found.written} to {found.value}, the code asks for "
            f"`{found.asked}` and uses its default {found.used}",
            (found.event, f"there is no {found.asked}: the default {found.used} is used"),
        )


def _never_given(program: Program) -> Findings:
    """A weight decay that is written down, and optimizers that are given none."""
    settings = settings_of(program, ("weight_decay",))
    made = optimizers_without(program, "weight_decay") if len(settings) == 1 else []
    if not made or settings[0].value == 0 or is_read(program, settings[0]):
        return
    own = 0.01 if made[0].maker.endswith("AdamW") else 0.0
    if settings[0].value != own:
        yield finding(
            f"The weight decay is set to {settings[0].value:g} and never read: the optimizer uses "
            f"its default {own:g}",
            (settings[0].site, f"weight_decay is {settings[0].value:g}, unread"),
            (made[0], "the optimizer gets none"),
            at=made[0],
        )


def _unread(program: Program, words: str, names: tuple[str, ...]) -> Findings:
    used = used_by_optimizers(program, names)
    settings = settings_of(program, names)
    if len(settings) != 1 or not used or not all(is_written_down(v) for v in used):
        return
    setting = settings[0]
    if any(constant(v) == setting.value for v in used) or is_read(program, setting):
        return
    number = source_text(used[0])
    yield finding(
        f"The {words} is set to {setting.value:g} and never read: the optimizer uses {number}",
        (setting.site, f"{setting.name} is {setting.value:g}, unread"),
        (used[0], f"the optimizer uses {number}"),
        at=used[0],
    )


_program = template("""
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-2)
args = parser.parse_args()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr={used})
{more:print(args)}
""")

_DEFAULTS = """
class Fitter:
    def __init__(self, net, rate):
        self.opt = torch.optim.Adam(net.parameters(), lr=1e-6)
        {change} = rate
"""

_LOADED = """
import json
import torch

with open("config.json") as file:
    config = json.load(file)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=config.get("lr", 1e-3))
{more}
"""


def _loaded(name: str, more: str = "") -> Run:
    text = f'{{"{name}": 0.1, "epochs": 3}}'
    return make_run(sources={"train.py": _LOADED.format(more=more), "config.json": text})


_field = template("""
from dataclasses import dataclass

@dataclass
class Config:
    lr: float = 1e-3
    weight_decay: float = 0.05

cfg = Config()
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(net.parameters(), lr=cfg.lr{more:, weight_decay=cfg.weight_decay})
""")

FIRES = {
    "a weight decay that no optimizer gets": _field(""),
    "a file calls it by another name": _loaded("learning_rate"),
    "a dictionary calls it by another name": script("""
CONFIG = {"batchSize": 256, "hidden": 64}

def loader(settings, data):
    size = settings.get("batch_size", 32)
    return torch.utils.data.DataLoader(data, batch_size=size, shuffle=True)

for x, y in loader(CONFIG, data):
    print(x)
"""),
    "written into the defaults": script(_DEFAULTS, path="fit.py", change='self.opt.defaults["lr"]'),
    "an option": _program("1e-6"),
    "the rate is shown from the optimizer": _program(
        "1e-6", 'print(optimizer.param_groups[0]["lr"])'
    ),
    "a constant": script(
        "LEARNING_RATE = 0.05\noptimizer = torch.optim.SGD(model.parameters(), lr=5e-6)\n"
    ),
    "the number has a name of its own": script(
        "import torch\nfrom dataclasses import dataclass\n@dataclass\n"
        "class Config:\n    lr: float = 0.05\n    epochs: int = 9\ncfg = Config()\n"
        "initial_rate = 5e-6\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=initial_rate)\n"
        "print(cfg.epochs)\n"
    ),
    "an entry": script(
        "config = {'learning_rate': 4e-3, 'steps': 9}\n"
        "optimizer = torch.optim.AdamW(model.parameters(), lr=4e-6)\n"
        "for step in range(config['steps']):\n    pass\n"
    ),
}

SILENT = {
    "near miss: a weight decay that is given": _field(),
    "the file has it": _loaded("lr"),
    "near miss: both names are asked for": _loaded(
        "learning_rate", 'if "learning_rate" in config:\n    print("an old name")'
    ),
    "near miss: another setting": _loaded("length"),
    "near miss: written into the groups": script(
        _DEFAULTS, path="fit.py", change='self.opt.param_groups[0]["lr"]'
    ),
    "it is read": _program("args.lr"),
    "near miss: the schedule reads it": _program(
        "1e-6", "torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr)"
    ),
    "near miss: computed from it": script(
        "LEARNING_RATE = 0.05\nrate = LEARNING_RATE / 10\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=rate)\n"
    ),
    "near miss: equal numbers": _program("0.01"),
    "near miss: handed on": _program("1e-6", "engine.fit(model, args)"),
    "near miss: taken apart": _program("1e-6", "Trainer(**vars(args))"),
    "near miss: read by its name": _program("1e-6", 'rate = getattr(args, "lr")'),
}
