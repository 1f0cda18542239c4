"""What the command line sets where nobody gives another value."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.settings import constants_of
from traindx.examples import make_run

TEXT = """
import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("-p", "--precision", default="fp16" if torch.cuda.is_available() else "no")
parser.add_argument("--max-norm", type=float, default=1.0)
parser.add_argument("--rate", dest="lr")
args = parser.parse_args()
use({value})
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("args.precision", {"fp16", "no"}),
        ("args.max_norm", {1.0}),
        ("args.lr", set()),
        ("args.unseen", set()),
        ("'no'", {"no"}),
    ],
)
def test_defaults(value: str, expected: set[object]) -> None:
    story = program_of(make_run(sources={"train.py": TEXT.format(value=value)})).stories[0]
    (used,) = (e for e in story.events if e.name == "()")
    assert set(constants_of(story, used.args[0])) == expected
