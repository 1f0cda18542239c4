"""What a sentence makes worth checking: listed in order, never believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx import api
from traindx.causes import cause_named
from traindx.specialists.playbooks import read_yaml
from traindx.specialists.routing import route
from traindx.specialists.routing.concepts import concepts_told, lexicon
from traindx.specialists.routing.phrases import parse_phrase
from traindx.specialists.routing.suspects import MOST, signs


def test_signs_name_what_exists() -> None:
    concepts = {concept.name for concept, _ in concepts_told(lexicon().told)}
    for sign in signs():
        assert sign.heard or sign.says
        assert sign.heard <= concepts, sign.heard
        assert all(cause_named(cause).name == cause for cause in sign.causes)


def test_no_phrase_of_a_sign_is_lost() -> None:
    from importlib.resources import files

    text = (
        files("traindx.specialists.routing").joinpath("suspects.yaml").read_text(encoding="utf-8")
    )
    for entry in read_yaml(text)["signs"]:
        for written in entry.get("says", ()):
            assert parse_phrase(written, lexicon().grammar) is not None, written


@pytest.mark.parametrize(
    ("sentence", "first"),
    [
        ("my val loss goes up while train loss goes down", "overfitting"),
        ("each epoch takes longer than the one before", "graph-kept-alive"),
        ("GPU memory keeps growing until it runs out", "graph-kept-alive"),
        ("the loss falls and the accuracy stays zero", "metric-bug"),
        ("loss jumps when I resume training", "resume-without-optimizer-state"),
        ("loss is nan with mixed precision", "fp16-overflow"),
        ("EOFError: Ran out of input with num_workers=4 on Windows", "worker-crash"),
        ("the model predicts the same class for every image", "class-collapse"),
    ],
)
def test_the_likeliest_comes_first(sentence: str, first: str) -> None:
    assert route(sentence).candidates[0] == first


def test_words_show_nothing() -> None:
    answer = route("loss is stuck at 0.693")
    assert answer.causes == ()
    assert 1 < len(answer.candidates) <= MOST


@pytest.mark.parametrize("sentence", ["how do I sort a list in Python", "training went well", ""])
def test_nothing_is_suspected_of_what_is_no_trouble(sentence: str) -> None:
    assert route(sentence).candidates == ()


def test_what_is_reported_is_listed_and_not_believed(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("epoch 1 loss 0.6931\n")
    told = api.diagnose(log, symptoms=["the loss is stuck at 0.693"])
    assert told.root_causes == () and told.hypotheses == ()
    assert "lr-too-high" in told.questions[-1]
