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


OPEN = """
import os, sys
import torch
from types import SimpleNamespace
from omegaconf import OmegaConf
class Config(dict):
    __getattr__ = dict.__getitem__
USUAL = dict(batch=128, model={{"width": 32}})
changed = dict(USUAL)
for item in sys.argv[1:]:
    key, value = item.split("=")
    changed[key] = int(value)
plain = SimpleNamespace(**changed)
nested = OmegaConf.create({{"model": {{"width": 32}}}})
merged = OmegaConf.merge(nested, OmegaConf.from_cli())
own = Config(batch=128)
use({value})
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain.batch", {128}),
        ("plain.batch // 256", {0}),
        ("plain.unseen", set()),
        ("nested.model.width", {32}),
        ("merged.model.width", {32}),
        ("own.batch", {128}),
        ('int(os.environ.get("BATCH", 128))', {128}),
        ('os.environ.get("BATCH")', set()),
    ],
)
def test_what_may_be_changed_from_outside(value: str, expected: set[object]) -> None:
    story = program_of(make_run(sources={"train.py": OPEN.format(value=value)})).stories[0]
    (used,) = (e for e in story.events if e.name == "()")
    assert set(constants_of(story, used.args[0])) == expected
