from traindx.analysis.program.training.claims import each_place, finding, location_of
from traindx.analysis.program.training.zero_rates import early_ends, zero_rates
from traindx.examples import make_run, script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("lr-zero",))
def check(run: Run) -> Findings:
    """An optimizer is made with `lr=0`, or its schedule ends at zero within a few steps.

    ## What it detects
    A learning rate of 0, as a number or through names and settings, that no schedule, checkpoint or
    later assignment raises; and a `LambdaLR` whose factor is 0 for good after at most 50 steps,
    where it is stepped for every batch.

    ## Why it matters
    Every step multiplies the update by zero: training runs at full cost and changes nothing.

    ## What to do
    Give a learning rate: 1e-3 for Adam and 0.1 for SGD are where to start. Let a schedule end with
    the run.

    ## When it is wrong
    A one-cycle or cyclic schedule sets rates of its own and may raise it from zero; such an
    optimizer is left alone (one that multiplies the rate leaves it at zero). So is one whose
    parameters may come in groups with rates of their own, or that is handed to code out of sight.
    """
    for name, made in each_place(run, zero_rates, at=lambda zero: location_of(zero[1])):
        claim = f"`{name}` is made with a learning rate of 0"
        yield finding(claim, (made, "lr is 0 here"))
    for schedule, end in each_place(run, early_ends, at=lambda found: location_of(found[0].made)):
        when = f"after {end} steps" if end else "at every step"
        yield finding(
            f"{schedule.kind} sets the learning rate to 0 {when}",
            (schedule.made, f"its factor is 0 from step {end} on"),
            (schedule.steps[0], "and it is stepped here"),
        )


def _program(rate: str, after: str = "", held: str = "model.parameters()", more: str = "") -> Run:
    text = f"import torch\noptimizer = torch.optim.SGD({held}, lr={rate})\n{after}\n"
    return make_run(sources={"train.py": text, "engine.py": more})


_TRAIN = "from engine import train\ntrain(model, optimizer)"
_STEPS = "def train(model, optimizer):\n    optimizer.step()\n"
_WRITES = "def train(model, optimizer):\n    optimizer.param_groups[0]['lr'] = 0.1\n"

_fades = template("""
def fit(net, loader, epochs):
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    fade = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: {factor})
    for epoch in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            opt.step()
            fade.step()
""")

_OPTION = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument({option})
args = parser.parse_args()
{then}
net = torch.nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters(), lr={rate})
"""
_option = template(_OPTION, then="pass", option='"--lr", type=float, default=0', rate="args.lr")

FIRES = {
    "a schedule that is always zero": _fades("min(0, i // 100)"),
    "a schedule that is over after ten batches": _fades("max(0.0, 1 - i / 10)"),
    "zero by a setting": script(
        "import torch\nfrom dataclasses import dataclass\n@dataclass\n"
        "class Config:\n    lr: float = 0.0\ncfg = Config()\nnet = torch.nn.Linear(4, 2)\n"
        "opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)\n"
    ),
    "zero by default": _option(),
    "zero": _program("0"),
    "zero as a float": _program("0.0"),
    "integer division of settings, with a schedule": script(
        _OPTION + "decay = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)\n",
        option='"--batch", default=32',
        rate="0.1 * (args.batch // 256)",
        then="pass",
    ),
    "handed to what only steps": _program("0", _TRAIN, more=_STEPS),
    "groups without rates": _program(
        "0", held='[{"params": a.parameters()}, {"params": b.parameters()}]'
    ),
}

SILENT = {
    "near miss: a schedule of the length of a run": _fades("max(0.0, 1 - i / 10_000)"),
    "a rate": _program("0.1"),
    "near miss: zero stands for another": _option("args.lr = args.lr or 0.1"),
    "near miss: replaced where it is zero": _option(
        "if args.lr == 0:\n    args.lr = rate_for(net)"
    ),
    "near miss: a schedule raises it": _program(
        "0.0", "scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)"
    ),
    "near miss: a schedule that ends above zero": _program(
        "0.0", "s = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10, eta_min=1e-3)"
    ),
    "near miss: groups with their own rates": _program(
        "0", held='[{"params": a.parameters(), "lr": 0.1}, {"params": b.parameters(), "lr": 0.2}]'
    ),
    "near miss: groups out of sight": _program("0", held="groups_of(model)"),
    "near miss: written in another file": _program("0", _TRAIN, more=_WRITES),
    "near miss: handed out of sight": _program("0", "warm_up(optimizer, 0)"),
    "near miss: a rate from a checkpoint": _program("0", "optimizer.load_state_dict(saved)"),
    "near miss: written later": _program("0", "optimizer.param_groups[0]['lr'] = 0.1"),
}
