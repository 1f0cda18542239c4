"""Texts that a model generated during training."""

from dataclasses import replace

from traindx.analysis.metrics.text_samples import cite_text, repeated_cycle
from traindx.examples import make_run
from traindx.model.run import TextSample


def test_a_long_text_is_cut():
    assert cite_text(TextSample("word " * 20, "a.log")).says.endswith("…'")


def test_outputs_that_are_one_cycle():
    def run(*texts: str):
        return replace(make_run(), samples=tuple(TextSample(t, "a.log") for t in texts))

    assert repeated_cycle(run("::::", "::::::")) == ":"
    assert repeated_cycle(run("::::", "a quiet evening")) is None
