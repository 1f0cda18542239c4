import numpy as np

from traindx.analysis.epochs import cite_unshuffled, epoch_pattern
from traindx.examples import Floats, decay, flat, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding

REPEATS = 0.6  # correlation of one epoch's course with the next, on average
KEEPS = 0.35  # correlation of the pattern with itself a point later; of noise it is near 0
SWING = 3.0  # of the pattern within an epoch, over the noise around it


@detector(needs=("loss",), suggests=("unshuffled-training-data",))
def check(run: Run) -> Findings:
    """The training loss repeats the same pattern in every epoch.

    ## What it detects
    A loss whose ups and downs within an epoch repeat from epoch to epoch, well above the noise.

    ## Why it matters
    The batches come in the same order: sorted by class, by source or by length. The model chases
    the part it saw last and forgets the part before.

    ## What to do
    Shuffle the training data (`shuffle=True`, or a sampler with `set_epoch`).

    ## When it is wrong
    A running average that is reset every epoch, or a rate that cycles once per epoch, repeats too;
    a course that only falls within each epoch is taken for the former and left alone. So is what
    repeats from batch to batch without a course: mixed data in a fixed order are no fault.
    """
    loss = run.objective()
    if loss is None or not len(loss.epochs):
        return
    pattern = epoch_pattern(loss.finite())
    if pattern is None or pattern.likeness < REPEATS or pattern.swing < SWING * pattern.noise:
        return
    if pattern.only_falls or pattern.persistence < KEEPS:
        return
    setting = cite_unshuffled(run)
    says = (
        f"{loss.origin.name} has the same shape in {pattern.epochs} epochs (correlation "
        f"{pattern.likeness:.2f}), with an amplitude of {pattern.swing:.3g}"
    )
    yield finding(
        "The loss repeats the same pattern in every epoch",
        {"unshuffled-training-data": Strength.STRONG},
        cite(loss, says, 0, -1, likeness=pattern.likeness, swing=pattern.swing),
        *setting,
        shows="unshuffled-training-data" if setting else None,
    )


def _run(
    epoch: Floats, epochs: int = 6, *, noise: float = 0.02, shuffle: bool | None = None
) -> Run:
    rng = np.random.default_rng(0)
    rows = [
        epoch * (1.0 - 0.05 * e) + noise * rng.standard_normal(len(epoch)) for e in range(epochs)
    ]
    marks = np.repeat(np.arange(epochs, dtype=float), len(epoch))
    config = {} if shuffle is None else {"data.shuffle": shuffle}
    return logged(loss_train=np.concatenate(rows), epochs=marks, config=config)


_TEETH = np.concatenate(
    [np.linspace(2.0, 0.4, 20), np.linspace(2.2, 0.5, 20), np.linspace(1.8, 0.3, 20)]
)

FIRES = {
    "sorted by class": _run(_TEETH),
    "sorted, and the config says so": _run(_TEETH, shuffle=False),
}

_MIXED = 0.6 + 0.2 * np.random.default_rng(3).standard_normal(60)

SILENT = {
    "near miss: mixed data in a fixed order": _run(_MIXED),
    "shuffled": _run(flat(60, 0.8, noise=0.0), noise=0.1),
    "near miss: a running mean that restarts each epoch": _run(decay(60, 1.0, 0.6, noise=0.0)),
    "no epochs known": logged(loss_train=np.tile(_TEETH, 4)),
}
