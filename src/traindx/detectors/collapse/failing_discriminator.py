import numpy as np

from traindx.analysis.metrics.players import player_loss
from traindx.examples import Floats, flat, make_run
from traindx.registry import Findings, Run, cite, detector, finding, suggested

GUESS = 2.0 * float(np.log(2.0))  # the loss of answering one half to every sample, both terms added
BEATEN = 3.0  # times that
FOOLS = 0.05  # the loss of a generator whose samples are all taken for real
LASTS = 0.5  # of the run, to its end
ENOUGH = 8  # points
DISCRIMINATORS = ("d", "disc", "discriminator", "netd")
GENERATORS = ("g", "gen", "generator", "netg")
CAUSES = suggested(
    moderate="lr-zero missing-optimizer-step parameters-not-in-optimizer",
    weak="frozen-parameters detached-loss",
)


@detector(needs=("loss/train/*",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The discriminator's loss is far above that of a guess, and the generator's is zero.

    ## What it detects
    In the losses of a GAN: a discriminator loss of several times 2 ln 2 for the second half of the
    run, while the generator's loss is next to zero.

    ## Why it matters
    One step towards "one half for every sample" would be better. A discriminator that stays worse
    than that does not learn: the generator runs after a judge that stands still.

    ## What to do
    Look at the discriminator's optimizer: that it is stepped, holds the discriminator's parameters,
    and has a learning rate.

    ## When it is wrong
    Losses of Wasserstein and hinge GANs have no such level; where a loss is ever negative nothing
    is said.
    """
    judge, maker = player_loss(run, DISCRIMINATORS), player_loss(run, GENERATORS)
    if judge is None or maker is None or min(len(judge), len(maker)) < ENOUGH:
        return
    if min(float(judge.values.min()), float(maker.values.min())) < 0:
        return
    start = int(len(judge) * (1.0 - LASTS))
    lowest = float(judge.values[start:].min())
    fooled = float(maker.values[int(len(maker) * (1.0 - LASTS)) :].max())
    if lowest < BEATEN * GUESS or fooled > FOOLS:
        return
    says = f"{judge.origin.name} is at least {lowest:.3g} since {judge.when(start)}"
    yield finding(
        "The discriminator is worse than random guessing and does not learn",
        CAUSES,
        cite(judge, f"{says}; random guessing has {GUESS:.3g}", start, -1, lowest=lowest),
        cite(maker, f"{maker.origin.name} is at most {fooled:.2g}", start, -1, highest=fooled),
    )


def _run(judge: Floats, maker: Floats) -> Run:
    return make_run({"loss/train/d": judge, "loss/train/g": maker})


FIRES = {
    "a judge that stands still": _run(np.linspace(3.7, 28.0, 14), np.geomspace(0.05, 1e-6, 14))
}

SILENT = {
    "in balance": _run(flat(14, 1.3, noise=0.1), flat(14, 0.8, noise=0.1)),
    "near miss: beaten, and coming back": _run(
        np.linspace(14.0, 0.7, 14), np.linspace(0.0, 1.6, 14)
    ),
    "a Wasserstein loss": _run(np.linspace(9.0, 12.0, 14), np.linspace(-0.1, -3.0, 14)),
}
