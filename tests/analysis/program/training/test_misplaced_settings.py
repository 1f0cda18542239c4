"""Settings that stand in the place of another."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.facts.misplaced_settings import misplaced_settings
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

HEAD = "import argparse, torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def _story(source: str) -> Story:
    return program_of(make_run(sources={"t.py": source})).stories[0]


@pytest.mark.parametrize(
    ("call", "takes"),
    [
        ("F.smooth_l1_loss(a, b, 0.1)", "True or False for size_average"),
        ("nn.KLDivLoss('batchmean')", "True or False for size_average"),
        ("nn.LeakyReLU(True)", "a number for negative_slope"),
        ("nn.LSTM(8, 8, True)", "a whole number for num_layers"),
        ("torch.optim.Adam([a], 1e-3, 0.9)", "a pair of numbers for betas"),
        ("torch.optim.SGD([a], 0.1, 0.9, 1e-4)", "a share of one for dampening"),
        ("torch.utils.data.DataLoader(a, 32, 4)", "True or False for shuffle"),
        ("a.backward(True)", "a tensor for gradient"),
    ],
)
def test_a_constant_of_another_kind(call: str, takes: str) -> None:
    found = list(misplaced_settings(_story(f"{HEAD}{call}\n")))
    assert [misuse.takes for misuse in found] == [takes]


@pytest.mark.parametrize(
    "call",
    [
        "F.smooth_l1_loss(a, b, beta=0.1)",
        "F.smooth_l1_loss(a, b, False, False, 'sum', 0.1)",
        "nn.Linear(8, 8, 1)",
        "torch.optim.Adam([a], 1e-3, (0.9, 0.99))",
        "torch.optim.SGD([a], 0.1, 0.9, 0.5)",
        "torch.utils.data.DataLoader(a, 32, True, None, None, 4)",
        "F.dropout(a, p)",
        "F.dropout(a, *p)",
        "nn.Dropout(0.5 if p else rate)",
    ],
)
def test_a_place_takes_what_is_meant_for_it(call: str) -> None:
    assert not list(misplaced_settings(_story(f"{HEAD}{call}\n")))


def test_a_text_of_the_command_line_may_be_made_a_number() -> None:
    option = "p = argparse.ArgumentParser()\np.add_argument('--p', type=float, default='0.5')\n"
    source = f"{HEAD}{option}args = p.parse_args()\nnn.Dropout(args.p)\n"
    assert not list(misplaced_settings(_story(source)))
