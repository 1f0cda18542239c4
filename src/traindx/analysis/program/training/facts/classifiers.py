"""Classifiers of Transformers: how many outputs they are made with, and the labels they learn."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.examples import is_trainer, settings_of
from traindx.analysis.program.execution.values import (
    FunctionValue,
    Part,
    Result,
    Table,
    Value,
    constant,
    options_of,
)
from traindx.analysis.program.shapes.datasets import HUB_CLASSES
from traindx.analysis.program.training.facts.ranges import Reached
from traindx.analysis.program.training.settings import constants_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

CLASSIFIERS = ("ForSequenceClassification", "ForTokenClassification", "ForImageClassification",
               "ForAudioClassification")  # fmt: skip
LABELS = ("labels", "label")
DEFAULT = 2  # outputs of a classifier for which nobody gives a number
# checkpoints that were trained without classes of their own
BASES = ("bert-base", "bert-large", "distilbert-base", "roberta-base", "roberta-large",
         "deberta-v3", "albert-base", "electra-base", "electra-small", "xlm-roberta-base",
         "distilroberta-base", "camembert-base", "minilm")  # fmt: skip
KEEPS = frozenset({".map", ".shuffle", ".select", ".train_test_split", ".with_format",
                   ".remove_columns", ".rename_column", ".set_format",
                   "operator.getitem"})  # fmt: skip


def outputs_of(story: Story, model: Value | None) -> int | None:
    """Return the outputs of a classifier; None where it is none, or they are not in sight."""
    if not isinstance(model, Result) or model.receiver is not None:
        return None
    name = model.maker.removesuffix(".from_pretrained")
    if not name.endswith(CLASSIFIERS) or {"**", "id2label", "label2id"} & model.kwargs.keys():
        return None
    is_loaded = name != model.maker
    config = model.kwargs.get("config") or (model.args[0] if not is_loaded and model.args else None)
    if "num_labels" in model.kwargs:
        return _count(story, model.kwargs["num_labels"])
    if config is not None:
        return _configured(story, config)
    return DEFAULT if is_loaded and _is_base(story, model) else None


def _configured(story: Story, config: Value) -> int | None:
    if not isinstance(config, Result) or config.args or "num_labels" in config.fields:
        return None
    if not config.maker.endswith("Config"):
        return None
    if {"**", "id2label", "label2id"} & config.kwargs.keys():
        return None
    given = config.kwargs.get("num_labels")
    return DEFAULT if given is None else _count(story, given)


def _count(story: Story, given: Value) -> int | None:
    found = constants_of(story, given)
    return found[0] if len(found) == 1 and type(found[0]) is int else None


def _is_base(story: Story, model: Result) -> bool:
    """Tell whether a checkpoint is one that brings no classes with it."""
    names = constants_of(story, model.args[0] if model.args else None)
    name = names[0] if len(names) == 1 and isinstance(names[0], str) else ""
    last = name.lower().rsplit("/", 1)[-1]
    is_plain = last.count("-") <= 3 and "finetuned" not in last and "sst" not in last
    return is_plain and last.startswith(BASES)


def classifiers(story: Story) -> dict[Value, int]:
    """Return the classifiers that a program makes, each with its outputs."""
    made = (e.result for e in story.events if e.act is EventForm.CALL and not e.is_own)
    counted = ((v, outputs_of(story, v)) for v in made if v is not None)
    return {v: count for v, count in counted if count is not None}


def labels_learnt(
    story: Story, models: Container[Value]
) -> Iterator[tuple[ProgramEvent, Value, Reached]]:
    """Yield the labels that classifiers are trained on, and what they reach."""
    for event in story.events:
        if event.name == "()" and event.receiver is not None and event.receiver in models:
            yield from _reached(story, event, _of_call(event))
        if is_trainer(event.result):
            yield from _of_hub(story, event)
    for example in story.execution.examples:
        rows = options_of(example.value) if example.value is not None else ()
        if is_trainer(example.loader) and all(isinstance(r, Table) for r in rows):
            given = [r.fields[n] for r in rows for n in LABELS if n in r.fields]
            made = story.giver_of(example.loader)
            if made is not None:
                yield from _reached(story, made, given)
    yield from _written(story)


def _written(story: Story) -> Iterator[tuple[ProgramEvent, Value, Reached]]:
    """Yield the labels that are written beside what a tokenizer makes."""
    for event in story.events:
        is_entry = event.act is EventForm.STORE and event.name == "[]" and len(event.args) > 1
        if is_entry and constant(event.args[1]) in LABELS:
            yield from _reached(story, event, [event.args[0]])


def _of_call(event: ProgramEvent) -> list[Value]:
    if "labels" in event.kwargs:
        return [event.kwargs["labels"]]
    batch = event.kwargs.get("**")
    return [] if batch is None else [Part(batch, "labels")]


def _reached(
    story: Story, event: ProgramEvent, labels: list[Value]
) -> Iterator[tuple[ProgramEvent, Value, Reached]]:
    for value in labels:
        found = story.ranges.of(value)
        if found is not None:
            yield event, value, found


def _of_hub(story: Story, trainer: ProgramEvent) -> Iterator[tuple[ProgramEvent, Value, Reached]]:
    """Yield the labels of a dataset of the hub that a trainer gets with its labels unchanged."""
    value = settings_of(trainer.result).get("dataset") if trainer.result else None
    while isinstance(value, Part) or (isinstance(value, Result) and value.maker in KEEPS):
        if isinstance(value, Result) and value.maker == ".map" and _may_relabel(value):
            return
        value = next(iter(value.inputs), None)
    if isinstance(value, Result) and value.maker == "datasets.load_dataset" and value.args:
        classes = HUB_CLASSES.get(str(constant(value.args[0])))
        if classes is not None and len(value.args) == 1:
            yield trainer, value, Reached(0, classes - 1)


def _may_relabel(value: Result) -> bool:
    """Tell whether a function that rows are mapped with may write labels."""
    function = value.args[0] if value.args else value.kwargs.get("function")
    if not isinstance(function, FunctionValue):
        return True
    nodes = list(ast.walk(function.node))
    texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return any("label" in text for text in texts)
