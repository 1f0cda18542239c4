"""Names that hold something else by the time they are called."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.shadowed_names import HiddenRole, shadowed_names
from traindx.examples import script

LOOP = "loss = nn.MSELoss()\nmodel = nn.Linear(2, 2)\nfor x, y in data:\n    {line}\n"


@pytest.mark.parametrize(
    ("text", "shadows"),
    [
        (LOOP.format(line="loss = loss(model(x), y)"), {HiddenRole.LOSS}),
        (LOOP.format(line="model = model(x)"), {HiddenRole.MODEL}),
        (LOOP.format(line="value = loss(model(x), y)"), set()),
        ("len = 5\nprint(len([1, 2]))\n", {HiddenRole.BUILT_IN}),
        ("x = torch.randn(2, 3)\nb, F = x.shape\nprint(F.relu(x))\n", {HiddenRole.LIBRARY}),
    ],
)
def test_what_a_name_hides(text: str, shadows: set[HiddenRole]) -> None:
    (story,) = program_of(script(text)).stories
    assert {found.role for found in shadowed_names(story)} == shadows
