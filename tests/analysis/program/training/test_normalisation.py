"""By which numbers the inputs of training and of validation are normalised."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.normalisation import other_normalisations
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

TEXT = """
from torchvision import transforms as T
train_transform = T.Compose([T.ToTensor(), T.Normalize((0.5,), (0.5,))])
val_transform = T.Compose([T.ToTensor(){val}])
"""


@pytest.mark.parametrize(
    ("val", "is_there"),
    [
        (", T.Normalize((0.1,), (0.3,))", [True]),
        ("", [False]),
        (", T.Normalize([0.5] * 3, [0.5] * 3)", []),
        (", T.Normalize(mean, std)", []),
    ],
)
def test_other_normalisations(val: str, is_there: list[bool]) -> None:
    story = program_of(script(TEXT, val=val)).stories[0]
    assert [found.second is not None for found in other_normalisations(story)] == is_there
