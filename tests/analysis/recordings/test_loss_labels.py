"""The labels that enter a loss, and the predictions beside them."""

from dataclasses import replace
from math import log

import pytest

from traindx.analysis.recordings.loss_labels import (
    batch_labels,
    causes_of_gap,
    class_change,
    class_words,
    classes_of_only_loss,
    come_again,
    favourite_class,
    has_duplicates,
    is_cheap,
    is_counted,
    is_labelled_pair,
    label_entropy,
    late_loss,
    least_mistakes,
    one_late_answer,
    only_batch_label,
    only_label,
    prediction_count,
    varied_labels,
)
from traindx.analysis.recordings.observations import Term, terms_of
from traindx.examples import make_run, sampled
from traindx.model.findings import Strength
from traindx.model.recording import Loader, LossInput, Process, Sample, Summary

INPUTS = Summary("0", (32, 8), "float32")


def classes(labels: dict[str, int], **fields: object) -> LossInput:
    return replace(LossInput("cross_entropy", classes=4, labels=labels), **fields)


def run(*labels: dict[str, int], batch: tuple[Summary, ...] = ()) -> Process:
    return sampled(len(labels), losses=lambda i: (classes(labels[i]),), batch=batch)


def term(*labels: dict[str, int]) -> Term:
    return terms_of(run(*labels), "cross_entropy")[0]


def test_labels_of_a_batch_need_one_loss_over_classes():
    sample = Sample(1, 0, losses=(classes({"0": 20, "1": 12}),))
    assert batch_labels(sample) == {"0": 20, "1": 12}
    assert batch_labels(replace(sample, losses=(*sample.losses, LossInput("mse_loss")))) == {}
    assert batch_labels(Sample(1, 0, losses=(classes({"0": 3}),))) == {}


def test_one_label_for_all():
    assert only_label(term(*[{"2": 32}] * 5)) == "2"
    assert only_label(term(*[{"2": 31, "1": 1}] * 5)) is None
    constant = Summary("1", (32,), "int64", "cpu", 2, 2, 2.0, 0.0)
    assert only_batch_label(list(run(*[{"2": 32}] * 3, batch=(INPUTS, constant)).samples)) == "2"
    assert only_batch_label(list(run({"2": 32}, batch=(INPUTS,)).samples)) is None


def test_labels_of_the_batch_may_vary_where_those_of_the_loss_do_not():
    varied = Summary("1", (32,), "int64", "", 0, 3, 1.5, 1.1)
    process = run(*[{"0": 32}] * 5, batch=(INPUTS, varied))
    found = varied_labels(terms_of(process, "cross_entropy")[0])
    assert found is not None and found[1] is varied
    assert varied_labels(term(*[{"0": 32}] * 5)) is None


def test_the_entropy_of_even_labels_is_that_of_a_guess():
    assert label_entropy(term(*[{"0": 25, "1": 25, "2": 25, "3": 25}] * 3)) == pytest.approx(log(4))
    assert label_entropy(term({"0": 5, "1": 5})) is None


def test_classes_that_take_turns():
    even, odd = {"0": 16, "2": 16}, {"1": 16, "3": 16}
    process = run(*[even] * 5, *[odd] * 4)
    assert class_change(terms_of(process, "cross_entropy")[0]) == 5
    mixed = run(*[even | odd] * 9)
    assert class_change(terms_of(mixed, "cross_entropy")[0]) is None
    assert class_words(term({"10": 1, "2": 1}).labels()) == "2, 10"


def test_mistakes_that_are_sure_by_counting():
    given = classes({"0": 8, "1": 8, "2": 8, "3": 8}, predictions={"0": 32})
    assert least_mistakes(given) == pytest.approx(0.75)
    assert favourite_class(given) == "0"
    sample = Sample(1, 0, loss=0.05, losses=(given,), batch=(INPUTS,))
    assert is_counted(sample) and is_cheap(sample)
    assert not is_cheap(replace(sample, loss=1.4))
    assert not is_counted(replace(sample, batch=()))


def test_predictions_are_counted_by_row():
    given = classes({}, prediction=Summary(shape=(32, 4)), predictions={"0": 32})
    assert prediction_count(given) == 32


def test_a_pair_is_one_input_and_its_label():
    target = Summary("target", (32,), "int64")
    losses = (classes({}, target=target),)
    pair = Sample(1, 0, losses=losses, batch=(INPUTS, Summary("y", (32,), "int64")))
    assert is_labelled_pair(pair)
    assert not is_labelled_pair(replace(pair, batch=(INPUTS, INPUTS, pair.batch[1])))


def test_duplicates_come_again_within_the_first_pass():
    samples = [Sample(i, i, batch=(INPUTS,), repeated=9) for i in range(4)]
    known = Process(loaders=(Loader(1, 0, batches=20),))
    assert has_duplicates(known, samples)
    assert not has_duplicates(known, [replace(s, repeated=0) for s in samples])
    assert has_duplicates(Process(loaders=(Loader(1, 0),)), samples)


def test_the_classes_of_the_only_loss():
    only = Sample(1, 0, losses=(classes({}),))
    assert classes_of_only_loss(only) == {4}
    assert classes_of_only_loss(replace(only, losses=(*only.losses, *only.losses))) == {0, 1}


def test_the_late_loss_is_that_of_the_log_where_it_is_long_enough():
    late = Term((Sample(1, 0, loss=0.5),), (classes({}),))
    assert late_loss(make_run(), late) == 0.5
    assert late_loss(make_run({"loss/train": [1.0] * 12 + [0.1] * 4}), late) == 0.1


def test_labels_explain_a_gap():
    def causes(*labels: dict[str, int]):
        process = run(*labels)
        return causes_of_gap(process, terms_of(process, "cross_entropy")[0])[0]

    assert causes(*[{"0": 60, "1": 2, "2": 1, "3": 1}] * 8)["class-imbalance"] is Strength.STRONG
    assert causes(*[{"0": 11, "1": 12, "2": 11}] * 8)["distribution-shift"] is Strength.STRONG
    assert causes({"0": 1})["class-imbalance"] is Strength.WEAK


def test_one_answer_in_all_late_batches():
    def answer(*predicted: dict[str, int]) -> tuple[str, float] | None:
        inputs = [
            LossInput(
                "cross_entropy", prediction=Summary(shape=(sum(p.values()), 4)), classes=4,
                predictions=p,
            )
            for p in predicted
        ]  # fmt: skip
        process = sampled(len(inputs), losses=lambda i: (inputs[i],))
        return one_late_answer(terms_of(process, "cross_entropy")[0])

    assert answer({"2": 64}, {"2": 64}) == ("2", 1.0)
    assert answer({"2": 64}, {"1": 64}) is None
    assert answer({"2": 60, "1": 4}) is None
    assert answer({"2": 8}) is None


def test_classes_that_come_again() -> None:
    def batches(*names: str) -> list[tuple[Sample, dict[str, int]]]:
        return [(Sample(i), {name: 30}) for i, name in enumerate(names)]

    assert come_again(batches(*"0123401234"))
    assert not come_again(batches(*"0011223344"))
    assert not come_again(batches(*"0123400000"))
