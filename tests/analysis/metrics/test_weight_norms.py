"""The logged norms of the weights."""

import pytest

from traindx.analysis.metrics.weight_norms import norm_of_layers
from traindx.examples import make_run


def test_the_norm_of_all_layers_is_that_of_their_norms():
    layers = {"layers/0/weight_norm": [3.0, 6.0], "layers/1/weight_norm": [4.0, 8.0]}
    found = norm_of_layers(make_run(layers))
    assert found is not None and found.values.tolist() == pytest.approx([5.0, 10.0])
    uneven = {**layers, "layers/2/weight_norm": [1.0]}
    assert norm_of_layers(make_run(uneven)) is None
    assert norm_of_layers(make_run()) is None
