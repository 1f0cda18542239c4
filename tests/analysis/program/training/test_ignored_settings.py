"""Settings that are taken without an error and read by nobody."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.ignored_settings import (
    ignored_settings,
    swallowed_settings,
)
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run


@pytest.mark.parametrize(
    ("made", "names"),
    [
        ("T.GPT2Config(n_embd=8, dropout=0.3)", ["dropout"]),
        ("T.GPT2Config(hidden_size=8, resid_pdrop=0.3)", []),
        ("T.BertConfig(n_layer=2, hidden_size=8)", ["n_layer"]),
        ("T.T5Config(dropout_rate=0.3)", []),
        ("T.AutoConfig.from_pretrained('gpt2', dropout=0.3)", ["dropout"]),
        ("T.AutoConfig.from_pretrained('some/model', dropout=0.3)", []),
        ("T.GPT2Config(pooling='mean')", []),
    ],
)
def test_ignored_settings(made: str, names: list[str]) -> None:
    text = f"import transformers as T\nconfig = {made}\nmodel = T.AutoModel.from_config(config)\n"
    (story,) = program_of(make_run(sources={"train.py": text})).stories
    assert [found.name for found in ignored_settings(story)] == names


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("make(learning_rate=1)", ["lr"]),
        ("make(lr=1)", []),
        ("make(lr=1, learning_rate=2)", []),
        ("make(colour=1)", []),
    ],
)
def test_swallowed_settings(call: str, meant: list[str]) -> None:
    text = f"def make(lr=0.1, **rest):\n    return lr\n\nrate = {call}\n"
    stories = program_of(make_run(sources={"train.py": "import torch\n" + text})).stories
    found = [s.parameter for story in stories for s in swallowed_settings(story)]
    assert found == meant
