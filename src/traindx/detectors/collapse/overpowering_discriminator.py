import numpy as np

from traindx.analysis.curves import since
from traindx.analysis.metrics.players import player_loss, was_in_balance
from traindx.examples import Floats, flat, make_run
from traindx.registry import Findings, Run, cite, detector, finding, suggested

WON = 0.02  # of ln 2, where a discriminator that is fooled half of the time stands
LASTS = 0.3  # of the run, to the end
AWAY = 3.0  # times its start: the loss of a generator that is seen through
ENOUGH = 10  # points
MANY = 30  # points; fewer do not tell a generator that gave up from one that never learnt
DISCRIMINATORS = ("d", "disc", "discriminator", "netd", "d_loss")
GENERATORS = ("g", "gen", "generator", "netg", "g_loss")
OPEN = suggested(
    moderate="generator-mode-collapse missing-optimizer-step gradients-cleared-before-step "
    "saturated-activations",
    weak="parameters-not-in-optimizer lr-zero",
)


@detector(needs=("loss/train/*",), suggests=tuple(OPEN))
def check(run: Run) -> Findings:
    """The discriminator's loss is zero and the generator's loss runs away.

    ## What it detects
    In the losses of a GAN: a discriminator loss at zero for the last part of the run while the
    generator's loss is several times what it was.

    ## Why it matters
    A discriminator that is always right gives no gradient to learn from. The generator ends with a
    few images or none that matter.

    ## What to do
    Train the discriminator less or more slowly, smooth its labels, use a spectral norm or a
    gradient penalty.

    ## When it is wrong
    Losses of Wasserstein and hinge GANs have no such level; they are unbounded or zero by design,
    and where the discriminator's loss is ever negative nothing is said.
    """
    judge, maker = player_loss(run, DISCRIMINATORS), player_loss(run, GENERATORS)
    if judge is None or maker is None or min(len(judge), len(maker)) < ENOUGH:
        return
    if float(judge.values.min()) < 0 or "hinge" in str(run.config.settings).lower():
        return
    last = judge.values[int(len(judge) * (1 - LASTS)) :]
    start = float(np.median(np.abs(maker.values[: max(1, len(maker) // 10)])))
    end = float(np.median(maker.values[-max(1, len(maker) // 10) :]))
    if float(np.median(last)) > WON * np.log(2) or end < AWAY * start or end < 2.0:
        return
    first = min(since(judge.values <= 0.2 * np.log(2)), len(judge) - 1)
    is_sure = min(len(judge), len(maker)) >= MANY or was_in_balance(judge, first)
    yield finding(
        "The discriminator is too strong: its loss is near zero, the generator's keeps rising",
        suggested("generator-mode-collapse") if is_sure else OPEN,
        cite(judge, f"{judge.origin.name} is {float(np.median(last)):.2g}", first, -1),
        cite(maker, f"{maker.origin.name} rose from {start:.3g} to {end:.3g}", 0, -1, end=end),
    )


def _run(judge: Floats, maker: Floats) -> Run:
    return make_run({"loss/train/d": judge, "loss/train/g": maker})


FIRES = {
    "from one epoch to the next, late in the run": make_run(
        {
            "loss/train/d": np.append([1.7], np.zeros(15)),
            "loss/train/g": np.append([0.7], np.linspace(14.0, 80.0, 15)),
        },
        steps=np.arange(44, 60),
        axis="epoch",
    ),
    "a won game": _run(np.geomspace(0.7, 1e-5, 100), np.linspace(0.8, 12.0, 100)),
    "a few points": _run(np.geomspace(0.14, 1e-6, 14), np.linspace(2.6, 21.0, 14)),
}

SILENT = {
    "in balance": _run(flat(100, 0.6, noise=0.2), flat(100, 1.2, noise=0.3)),
    "near miss: the generator's loss rises, the judge still errs": _run(
        flat(100, 0.3, noise=0.3), np.linspace(0.8, 4.0, 100)
    ),
    "a Wasserstein loss": _run(np.linspace(0.0, -5.0, 100), np.linspace(0.8, 12.0, 100)),
}
