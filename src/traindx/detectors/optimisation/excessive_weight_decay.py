from traindx.analysis.program.training.claims import each_place, finding, program_of
from traindx.analysis.program.training.decay import Decay, decays_of
from traindx.analysis.program.training.shrinkage import gradient_decays, shrinkages
from traindx.examples import make_run, template
from traindx.registry import Findings, Run, detector

SHARE = 5e-3  # of a weight per step: half of it is gone after 140 steps, whatever the data say
ABSOLUTE = 0.05  # added to every gradient of an average, which are some hundredths
GRADIENT = 0.5  # times the weight: Adam divides by it, and the gradient of the loss is noise beside


@detector(needs=("source",), suggests=("weight-decay-too-high",))
def check(run: Run) -> Findings:
    """An optimizer is given a weight decay that shrinks the weights faster than they can learn.

    ## What it detects
    A weight decay that, times the learning rate, takes half a per cent or more of every weight in
    every step; or one of 0.5 or more in an optimizer that adds it to the gradient and divides by
    the size of the sum (Adam, RMSprop). So too as a penalty that is added to an averaged loss: the
    sum of the squares, or of the absolute values, of all weights.

    ## Why it matters
    The weights shrink towards zero and the model predicts the same for every input.

    ## What to do
    Use 0.01 to 0.1 with AdamW, 1e-4 with SGD, and none with Adam unless you have tuned it.

    ## When it is wrong
    A learning rate that a schedule keeps far below the number in sight makes such a decay mild.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for decay in (*decays_of(story), *gradient_decays(story)):
            place = decay.place if decay.place.site is not None else decay.optimizer
            if place.site is None or place.site.node in seen or not _is_excessive(decay):
                continue
            seen.add(place.site.node)
            what = "The training step" if decay.by is not None else decay.kind
            yield finding(
                f"{what} has a weight decay of {decay.amount:g} at a learning rate of "
                f"{decay.rate:g}: {_effect(decay)}",
                (place, f"weight_decay={decay.amount:g}, lr={decay.rate:g}"),
            )
    for found in each_place(run, shrinkages, lambda shrinkage: shrinkage.event.node):
        if found.share >= SHARE:
            yield finding(
                f"Every step takes {found.share:.1%} of each weight away",
                (found.event, "weights are made smaller here, whatever their gradients say"),
            )


def _is_excessive(decay: Decay) -> bool:
    if not decay.is_proportional:
        return decay.amount >= ABSOLUTE
    if decay.is_gradient:
        return decay.amount >= GRADIENT
    return decay.share >= SHARE and not decay.is_usual


def _effect(decay: Decay) -> str:
    if decay.is_gradient:
        return "it outweighs the gradient of the loss"
    return f"every step takes {decay.share:.1%} of each weight"


_program = template("""
net = nn.Linear(4, 3)
opt = torch.optim.{optimizer}
for x, y in train_loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
""")

_CONFIGURED = """
import json
import torch
from torch import nn

settings = json.load(open("conf.json"))
net = nn.Linear(4, 3)
opt = getattr(torch.optim, settings["name"])(net.parameters(), **settings["options"])
for x, y in train_loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
"""


def _configured(decay: float) -> Run:
    text = f'{{"name": "AdamW", "options": {{"lr": 0.001, "weight_decay": {decay}}}}}'
    return make_run(sources={"train.py": _CONFIGURED, "conf.json": text})


_penalty = template("""
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for x, y in train_loader:
    loss = nn.functional.cross_entropy(net(x), y) + {term}
    opt.zero_grad()
    loss.backward()
    opt.step()
""")

_by_hand = template("""
net = nn.Linear(4, 3)
average = copy.deepcopy(net)
for x, y in train_loader:
    nn.functional.cross_entropy(net(x), y).backward()
    with torch.no_grad():
        for p, q in zip(net.parameters(), average.parameters()):
            {update}
            p.grad = None
""")

FIRES = {
    "by hand, not times the rate": _by_hand("p.mul_(1 - 0.1)\n            p -= 1e-3 * p.grad"),
    "by hand, in one sum": _by_hand("p.data.sub_(0.1 * (p.grad + 0.5 * p))"),
    "a penalty": _penalty("0.5 * sum((p ** 2).sum() for p in net.parameters())"),
    "an L1 penalty": _penalty("0.5 * sum(p.abs().sum() for n, p in net.named_parameters())"),
    "AdamW": _program("AdamW(net.parameters(), lr=1e-2, weight_decay=1.0)"),
    "SGD": _program("SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=0.5)"),
    "Adam, added to the gradient": _program("Adam(net.parameters(), weight_decay=1)"),
    "in a group": _program('AdamW([{"params": net.parameters(), "weight_decay": 10}], lr=1e-3)'),
    "in a configuration file": _configured(10.0),
}

SILENT = {
    "near miss: by hand, times the rate": _by_hand("p.sub_(0.01 * (p.grad + 0.1 * p))"),
    "near miss: a moving average": _by_hand(
        "p -= 0.1 * p.grad\n            q.mul_(0.9).add_(p, alpha=0.1)"
    ),
    "near miss: an average of two": _by_hand(
        "p -= 0.1 * p.grad\n            p.mul_(0.5).add_(q, alpha=0.5)"
    ),
    "near miss: a usual decay, the rate is to blame": _program(
        "AdamW(net.parameters(), lr=0.1, weight_decay=0.1)"
    ),
    "near miss: a mild penalty": _penalty("1e-4 * sum((p ** 2).sum() for p in net.parameters())"),
    "near miss: on the output": _penalty("0.5 * (net(x) ** 2).sum()"),
    "near miss: towards other weights": _penalty(
        "sum(((p - q) ** 2).sum() for p, q in zip(net.parameters(), old))"
    ),
    "usual": _program("AdamW(net.parameters(), lr=1e-3, weight_decay=0.1)"),
    "near miss: strong, as for grokking": _program(
        "AdamW(net.parameters(), lr=1e-3, weight_decay=1.0)"
    ),
    "near miss: large at a small rate": _program(
        "SGD(net.parameters(), lr=1e-4, weight_decay=1.0)"
    ),
    "near miss: the rate is out of sight": _program(
        "AdamW(net.parameters(), lr=rate(), weight_decay=10)"
    ),
    "a usual configuration file": _configured(0.05),
}
