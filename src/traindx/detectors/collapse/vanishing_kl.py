import numpy as np

from traindx.analysis.curves import since
from traindx.analysis.metrics.loss_terms import NOTHING, is_vae, negligible_kl
from traindx.examples import decay, flat, logged, make_run
from traindx.registry import Findings, Run, cite, detector, finding

LASTS = 0.3  # of the run, to the end
LEFT = 200.0  # times what is left: a KL that was there once and is squeezed out


@detector(needs=("kl/*|loss/*/kl*",), suggests=("posterior-collapse",))
def check(run: Run) -> Findings:
    """The KL term of a variational autoencoder goes to zero and stays there.

    ## What it detects
    A KL divergence below a fiftieth of a nat for the last part of a run that also has a
    reconstruction term, or whose settings or source say that it trains a VAE; beside a small loss
    it has to be smaller still, unless it began two hundred times as high.

    ## Why it matters
    The posterior equals the prior: the latent code carries nothing, the decoder ignores it.

    ## What to do
    Anneal the weight of the KL term from zero, give it free bits, or weaken the decoder.

    ## When it is wrong
    The small KL of a policy update in reinforcement learning is meant to be small; without a
    reconstruction term nothing is said. Where the loss is a mean over values, so may the KL be,
    and is held against the loss.
    """
    if not is_vae(run):
        return
    for series in (*run.matching("kl/train*"), *run.matching("loss/train/kl*")):
        finite = series.finite()
        start = int(len(finite) * (1.0 - LASTS))
        nothing = negligible_kl(run)
        if len(finite) and float(finite.values[0]) > LEFT * NOTHING:
            nothing = max(nothing, min(NOTHING, float(finite.values[0]) / LEFT))
        if len(finite) < 5 or not bool(np.all(np.abs(finite.values[start:]) < nothing)):
            continue
        first = since(np.abs(finite.values) < nothing)
        end = float(finite.values[-1])
        yield finding(
            f"The KL term is near zero since {finite.when(first)}, so the latent code is ignored",
            "posterior-collapse",
            cite(finite, f"{finite.origin.name} stays below {nothing:.2g}", first, -1, end=end),
        )
        return


_RECON = decay(40, 90.0, 40.0)
_SOURCE = {"train.py": "def reparameterize(mu, logvar):\n    return mu + torch.randn_like(mu)"}

FIRES = {
    "squeezed out as its weight rises": make_run(
        {
            "kl/train": np.append(np.geomspace(9.9, 0.013, 30), flat(30, 0.0121)),
            "loss/train": flat(60, 1.06),
            "other/beta": np.minimum(1.0, np.linspace(0.0, 2.0, 60)),
        }
    ),
    "collapsed": make_run({"kl/train": np.geomspace(5.0, 1e-4, 40), "loss/train/recon": _RECON}),
    "from the beginning, told by the source": logged(
        kl_train=flat(12, 1.6e-4), loss_train=decay(12, 0.3, 0.23), sources=_SOURCE
    ),
}

SILENT = {
    "used": make_run({"kl/train": flat(40, 12.0), "loss/train/recon": _RECON}),
    "near miss: a policy's small KL": logged(kl_train=flat(40, 0.005), reward_train=_RECON),
    "near miss: a policy with a squashed normal": logged(
        kl_train=flat(40, 0.005), reward_train=_RECON, sources=_SOURCE
    ),
    "near miss: both are means over pixels": make_run(
        {"kl/train": flat(40, 0.005), "loss/train/recon": decay(40, 0.3, 0.1)}
    ),
    "near miss: annealed from zero": make_run(
        {"kl/train": np.linspace(0.0, 8.0, 40), "loss/train/recon": _RECON}
    ),
}
