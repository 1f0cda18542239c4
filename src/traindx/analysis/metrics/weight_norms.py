"""The logged norms of the weights."""

import numpy as np

from traindx.model.run import Origin, Run, Series


def norm_of_layers(run: Run) -> Series | None:
    """The norm of all weights together, where every layer is told of at the same steps."""
    layers = [s for s in run.matching("layers/*/weight_norm") if len(s)]
    if not layers or any(len(s) != len(layers[0]) for s in layers):
        return None
    first = layers[0]
    total = np.sqrt(np.sum([np.square(s.values) for s in layers], axis=0))
    origin = Origin(first.origin.artifact, "the norm of all weights", first.origin.unit)
    return Series("weight_norm", total, first.steps, origin, first.axis, first.epochs, first.places)
