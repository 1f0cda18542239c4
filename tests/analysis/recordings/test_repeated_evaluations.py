"""Passes over the same held-out examples: what stays, and what changes."""

from __future__ import annotations

from traindx.analysis.recordings.repeated_evaluations import changed_examples, held_out_loaders
from traindx.model.recording import Epoch, Loader, Process, Summary

LABELS = Summary("y", (16,), "int64", "cpu", 0, 9, 4.5, 2.9)


def inputs(mean: float, name: str = "x") -> Summary:
    return Summary(name, (16, 8), "float32", "cpu", -1, 1, mean, 1 + mean)


def process(*passes: tuple[Summary, ...], sampler: str = "SequentialSampler") -> Process:
    loaders = (Loader(1, 0, "Rows", 600), Loader(2, 1, "Rows", 90, sampler=sampler))
    judged = tuple(Epoch(9 + i, 1, 6, i, first=p) for i, p in enumerate(passes))
    return Process(loaders=loaders, epochs=(Epoch(3, 0, 40, 40, trained=40), *judged))


def test_the_same_labels_with_other_inputs() -> None:
    (found,) = changed_examples(process((inputs(0.1), LABELS), (inputs(0.2), LABELS)))
    assert found.loader.id == 1
    assert [s.mean for _, s in found.passes] == [0.1, 0.2]


def test_what_is_no_change() -> None:
    same = (inputs(0.1), LABELS)
    assert not list(changed_examples(process(same, same)))
    assert not list(changed_examples(process(same)))
    assert not list(changed_examples(process((inputs(0.1),), (inputs(0.2),))))
    shuffled = process((inputs(0.1), LABELS), (inputs(0.2), LABELS), sampler="RandomSampler")
    assert not list(changed_examples(shuffled))


def test_a_clean_example_beside_a_noisy_one() -> None:
    passes = [(inputs(m), inputs(0.3, "clean"), LABELS) for m in (0.1, 0.2)]
    assert not list(changed_examples(process(*passes)))


def test_another_loader_over_the_data_that_are_trained_on() -> None:
    seen = process((inputs(0.1), LABELS))
    twin = Loader(4, 2, "Rows", 600, sampler="SequentialSampler")
    both = Process(loaders=(*seen.loaders, twin), epochs=seen.epochs)
    assert [x.id for x in held_out_loaders(both)] == [1]


def test_a_pass_that_a_framework_keeps_open_while_it_trains() -> None:
    loaders = (Loader(1, 0, "Rows", 90), Loader(2, 1, "Rows", 600))
    kept = Epoch(9, 0, 4, 12, trained=12, own=0), Epoch(10, 1, 12, 12, trained=12, own=12)
    assert [x.id for x in held_out_loaders(Process(loaders=loaders, epochs=kept))] == [0]
    together = Epoch(9, 0, 12, 12, trained=12, own=0), kept[1]
    assert not list(held_out_loaders(Process(loaders=loaders, epochs=together)))
