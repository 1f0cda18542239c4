"""`traindx explain`: every name has a text, and a wrong one leads to the right one."""

from __future__ import annotations

import re

import pytest

from traindx.causes import all_causes, cause_named
from traindx.errors import UnknownName
from traindx.examples import make_run
from traindx.model.run import Run
from traindx.registry import detector
from traindx.report import catalogue


@pytest.mark.parametrize("name", catalogue.all_names())
def test_every_name_is_explained(name: str) -> None:
    text = catalogue.explain_name(name)
    assert text.startswith(f"# {name}\n")
    assert not re.search(r"\n{3,}|\.\.\s|\{\w+\}", text)


def test_the_names_are_sorted_and_hold_every_cause() -> None:
    names = catalogue.all_names()
    assert names == sorted(set(names))
    assert set(all_causes()) <= set(names)


def test_a_cause_is_explained_whole() -> None:
    text = catalogue.explain_name("lr-too-high")
    cause = cause_named("lr-too-high")
    assert cause.what in text
    for remedy in cause.remedies_for(Run()):
        assert f"**{remedy.change}.**" in text
        assert f"Expect: {remedy.expected_effect}." in text
        assert f"Verify: {remedy.verify}." in text
        assert f"If it fails: {remedy.if_it_fails}." in text
    assert "Log the gradient norm around the onset" in text
    assert "It brings about: `catastrophic-forgetting`" in text
    assert "It may follow from: `config-not-applied`" in text


def test_the_detectors_that_reach_a_cause_are_named() -> None:
    for found in catalogue.all_detectors():
        for name in found.suggests:
            assert f"- `{found.name}`, from " in catalogue.explain_name(name)


def test_a_cause_without_a_detector_says_so() -> None:
    reached = {name for d in catalogue.all_detectors() for name in d.suggests}
    for name in set(all_causes()) - reached:
        assert "No detector reaches it yet." in catalogue.explain_name(name)


@detector(needs=("loss", "lr|config"), suggests=("lr-zero",))
def check(run: Run) -> list[object]:
    """The loss does something.

    ## What it detects
    Something.

    ## When it is wrong
    Never.
    """
    return []


def test_a_detector_is_explained_by_its_own_documentation() -> None:
    found = check.__dict__["traindx_detector"]
    text = catalogue.explain_detector(found, level=2)
    assert text.startswith("## test-catalogue\n\n**The loss does something.**")
    assert (
        "- Needs: the training loss and the learning rate or the config.\n- Can suggest: `lr-zero`."
        in text
    )
    assert "### What it detects\nSomething.\n\n### When it is wrong\nNever." in text
    assert list(found.check(make_run())) == []


@pytest.mark.parametrize("spelling", ["lr_too_high", " LR-too-high ", "lr too high"])
def test_the_spelling_of_a_name_is_forgiven(spelling: str) -> None:
    assert catalogue.explain_name(spelling) == catalogue.explain_name("lr-too-high")


def test_an_unknown_name_is_an_error_that_says_what_to_try() -> None:
    with pytest.raises(UnknownName, match=r"'lr-too-loud'.*traindx explain --list"):
        catalogue.explain_name("lr-too-loud")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("lr-to-high", "lr-too-high"),
        ("mising_optimizer_step", "missing-optimizer-step"),
        ("leakage", "data-leakage"),
        ("overfiting", "overfitting"),
        ("sampler", "missing-distributed-sampler"),
    ],
)
def test_a_wrong_name_leads_to_the_right_one(wrong: str, right: str) -> None:
    assert right in catalogue.suggest_names(wrong)


@pytest.mark.parametrize("wrong", ["", "   ", "qqqqqq"])
def test_nonsense_leads_nowhere(wrong: str) -> None:
    assert catalogue.suggest_names(wrong) == []


def test_a_detector_is_explained_by_its_former_name_and_says_so() -> None:
    text = catalogue.explain_name("sampler_in_one_order")
    assert text.startswith("# missing-set-epoch\n")
    assert "A detector, formerly called `sampler-in-one-order`." in text
