import numpy as np

from traindx.analysis.metrics.players import winning_judge
from traindx.examples import Floats, flat, make_run
from traindx.registry import Findings, Run, cite, detector, finding, suggested

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
    game = winning_judge(run)
    if game is None:
        return
    judge, maker = game.judge.origin.name, game.maker.origin.name
    rose = f"{maker} rose from {game.began:.3g} to {game.made:.3g}"
    yield finding(
        "The discriminator is too strong: its loss is near zero, the generator's keeps rising",
        suggested("generator-mode-collapse") if game.is_sure else OPEN,
        cite(game.judge, f"{judge} is {game.judged:.2g}", game.since, -1),
        cite(game.maker, rose, 0, -1, end=game.made),
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
