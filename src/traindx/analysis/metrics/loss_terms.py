"""The terms of a composite loss."""

import numpy as np

from traindx.analysis.program.program_words import mentions
from traindx.model.run import Run, Series

TERM_POINTS = 20  # points
REGULARISERS = frozenset(
    {"reg", "l1", "l2", "aux", "balance", "entropy", "commit", "commitment", "penalty", "z", "kl",
     "decay", "smooth", "tv", "weight"}
)  # fmt: skip
NOTHING = 0.02  # nats in all: the latent code carries less than a thirtieth of a bit
SUMMED = 5.0  # a loss above this is a sum over an example; below, the KL may be a mean as well …
OF_THE_LOSS = 2e-3  # … and is nothing only beside the loss
MADE_OF = ("vae", "reparam", "variational_auto", "variational auto", "variationalauto")
VAE_WORDS = ("recon", "reconstruction", "rec", "elbo", "vae", "latent", "beta")
OUTWEIGHS = 1e4  # at start and end; weights of losses are tuned within a hundred or so
UNLEARNT = 0.5  # end over start of the small term: the sum does not see it


def is_task_term(series: Series) -> bool:
    """Tell whether a term is a task of its own and no regulariser."""
    words = set(series.name.split("/")[2].split("@")[0].split("_"))
    return not words & REGULARISERS and len(series.finite()) >= TERM_POINTS


def is_total(name: str) -> bool:
    """Tell whether a name is that of a whole training loss, as it is logged once or again."""
    return name.partition("@")[0] == "loss/train"


def term_levels(series: Series) -> tuple[float, float]:
    """Return the level at which a term starts and the one at which it ends."""
    values = series.finite().values
    width = max(1, len(values) // 20)
    return float(np.median(values[:width])), float(np.median(values[-width:]))


def is_vae(run: Run) -> bool:
    """Tell whether a run trains a variational autoencoder."""
    names = {w for n in run.series for w in n.replace("_", "/").split("/")}
    told = " ".join(f"{s.key} {s.value}" for s in run.config.settings).lower()
    if names & set(VAE_WORDS) or any(word in told for word in ("vae", "latent")):
        return True
    is_policy = any(n.startswith(("reward/", "entropy/")) for n in run.series)
    return not is_policy and mentions(run, *MADE_OF)


def negligible_kl(run: Run) -> float:
    """Return the KL that carries nothing, on the scale that the loss is told in."""
    losses = [s.finite() for s in (*run.matching("loss/train*"), *run.matching("*/recon*"))]
    level = max((abs(s.last) for s in losses if len(s) and "/kl" not in s.name), default=SUMMED)
    return NOTHING if level >= SUMMED else min(NOTHING, OF_THE_LOSS * level)


def is_outweighed(series: Series, big_start: float, big_end: float) -> bool:
    """Tell whether a term is ten thousand times smaller than another and not learnt."""
    start, end = term_levels(series)
    outweighed = big_start > OUTWEIGHS * start and big_end > OUTWEIGHS * end
    return start > 0 and outweighed and end > UNLEARNT * start
