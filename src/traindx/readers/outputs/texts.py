"""Sampled texts and predictions in records: which fields hold them, and what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from traindx.model.metric_names import is_step, words
from traindx.model.run import Confusion, TextSample, as_number

MAX_SAMPLES = 2000
MAX_TEXT = 2000  # characters; a text that repeats does so from the start
MAX_CLASSES = 200
_PLAIN = frozenset(
    {"sample", "samples", "generated", "generation", "generations", "completion", "completions",
     "prediction", "predictions", "predicted", "pred", "preds", "hypothesis", "hyp", "decoded",
     "continuation", "output", "outputs", "response", "responses", "translation"}
)  # fmt: skip
# words that may stand beside those in the name of the field
_BESIDE = frozenset(
    {"text", "texts", "model", "string", "str", "val", "valid", "eval", "test", "train", "greedy",
     "sampled", "label", "class", "answer", "table"}
)  # fmt: skip
_TRUTH = frozenset({"label", "labels", "target", "truth", "gold", "true", "y", "gt", "actual"})
# fields that hardly hold anything but what a model put out; "output" is a field of data sets too
SURE = frozenset(
    {"generated", "generated_text", "generation", "prediction", "predicted", "hypothesis",
     "completion", "model_output", "decoded"}
)  # fmt: skip


def is_output(name: str) -> bool:
    """Tell whether a field of that name holds what the model put out."""
    said = words(name.rsplit("/", 1)[-1])
    return bool(_PLAIN.intersection(said)) and all(w in _PLAIN or w in _BESIDE for w in said)


def texts_in(value: Any) -> list[str]:
    """Return the texts of a field: one, or a list of them."""
    found = value if isinstance(value, list) else [value]
    return [t[:MAX_TEXT] for t in found[:64] if isinstance(t, str) and t.strip()]


def is_label(value: Any) -> bool:
    """Tell whether a value may name a class."""
    if isinstance(value, str):
        return 0 < len(value) <= 40 and len(value.split()) <= 3
    return isinstance(value, (bool, int)) or (isinstance(value, float) and value.is_integer())


def class_name(value: Any) -> str:
    """Return the name of a class: a number without a decimal point."""
    return str(int(value)) if isinstance(value, float) else str(value)[:40]


@dataclass(slots=True)
class Pairs:
    """Predictions beside the truth, counted."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: str = ""

    def add(self, truth: str, predicted: str, locator: str) -> None:
        """Count one pair; pairs without end are no classes."""
        self.first = self.first or locator
        if (truth, predicted) in self.counts or len(self.counts) <= MAX_CLASSES**2:
            self.counts[truth, predicted] += 1

    def confusion(self, artifact: str) -> Confusion | None:
        """Return the matrix of what was predicted for what, if the truths are classes."""
        truths = {truth for truth, _ in self.counts}
        labels = sorted({label for pair in self.counts for label in pair}, key=_by_number)
        total = sum(self.counts.values())
        # names that hardly recur are texts
        if not 2 <= len(truths) <= MAX_CLASSES or len(labels) > MAX_CLASSES:
            return None
        if total < 4 * len(labels):
            return None
        matrix = tuple(tuple(float(self.counts[t, p]) for p in labels) for t in labels)
        return Confusion(matrix, tuple(labels), artifact, f"{self.first} and {total - 1} more")


def _by_number(label: str) -> tuple[float, str]:
    number = as_number(label)
    return (float("inf") if number is None else number), label


@dataclass(slots=True)
class Recorded:
    """What the records of a file say of outputs."""

    artifact: str
    samples: list[TextSample] = field(default_factory=list)
    pairs: Pairs = field(default_factory=Pairs)
    _known: dict[str, str] = field(default_factory=dict)

    def add(self, record: Mapping[str, Any], locator: str) -> None:
        """Look at one record."""
        step: float | None = None
        truth = predicted = None
        texts: list[str] = []
        for name, value in record.items():
            role = self._known.get(name) or self._role(name)
            if role == "output":
                predicted = value if is_label(value) and predicted is None else predicted
                texts += texts_in(value)
            elif role == "truth" and is_label(value):
                truth = value
            elif role == "step":
                step = as_number(value) if isinstance(value, (int, float)) else None
        room = MAX_SAMPLES - len(self.samples)
        self.samples += [TextSample(text, self.artifact, locator, step) for text in texts[:room]]
        if truth is not None and predicted is not None:
            self.pairs.add(class_name(truth), class_name(predicted), locator)

    def _role(self, name: str) -> str:
        said = words(name)
        is_truth = bool(_TRUTH.intersection(said)) and not _PLAIN.intersection(said)
        role = "output" if is_output(name) else "truth" if is_truth else "other"
        role = "step" if is_step(name) else role
        if len(self._known) < MAX_SAMPLES:
            self._known[name] = role
        return role

    def confusions(self) -> tuple[Confusion, ...]:
        """Return the matrix of the predictions, where there are enough of them."""
        made = self.pairs.confusion(self.artifact)
        return (made,) if made is not None else ()
