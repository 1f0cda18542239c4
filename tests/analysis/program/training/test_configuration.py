"""Settings that are written where nothing reads them."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.configuration import (
    late_settings,
    overwritten_options,
    written_defaults,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

START = """
import argparse
import torch
from transformers import BertConfig, BertForSequenceClassification
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.5)
args = parser.parse_args()
config = BertConfig()
model = BertForSequenceClassification(config)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def story_of(text: str) -> Story:
    return program_of(make_run(sources={"train.py": START + text + "\n"})).stories[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.config.hidden_dropout_prob = 0.4", True),
        ("config.attention_probs_dropout_prob = 0.4", True),
        ("model.config.use_cache = False", False),
        ("config.hidden_dropout_prob = 0.4\nmodel = BertForSequenceClassification(config)", False),
    ],
)
def test_settings_after_the_model(text: str, expected: bool) -> None:
    assert bool(list(late_settings(story_of(text)))) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("args.lr = 0.1", True),
        ("args.lr = args.lr * 2", False),
        ("if fast:\n    args.lr = 0.1", False),
        ("args.device = 0", False),
    ],
)
def test_options_that_are_replaced(text: str, expected: bool) -> None:
    assert bool(list(overwritten_options(story_of(text)))) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("opt.defaults['lr'] = 1.0", True),
        ("opt.lr = 1.0", True),
        ("for g in opt.param_groups:\n    g['learning_rate'] = 1.0", True),
        ("for g in opt.param_groups:\n    g['lr'] = 1.0", False),
        ("opt.note = 1.0", False),
    ],
)
def test_settings_that_no_group_reads(text: str, expected: bool) -> None:
    assert bool(list(written_defaults(story_of(text)))) is expected
