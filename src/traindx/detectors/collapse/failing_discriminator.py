import numpy as np

from traindx.analysis.metrics.players import GUESS, fooled_judge
from traindx.examples import Floats, flat, make_run
from traindx.registry import Findings, Run, cite, detector, finding, suggested

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
    game = fooled_judge(run)
    if game is None:
        return
    judge, maker, start = game.judge, game.maker, game.since
    says = f"{judge.origin.name} is at least {game.judged:.3g} since {judge.when(start)}"
    fooled = f"{maker.origin.name} is at most {game.made:.2g}"
    yield finding(
        "The discriminator is worse than random guessing and does not learn",
        CAUSES,
        cite(judge, f"{says}; random guessing has {GUESS:.3g}", start, -1, lowest=game.judged),
        cite(maker, fooled, start, -1, highest=game.made),
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
