"""Whether validation holds examples of the training data, by what each loader gave."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.experiments.preflight.checks import passed, unjudged
from traindx.model.findings import Evidence, Severity
from traindx.model.preflight import Check, Outcome

OVERLAP = ("overlap", "validation shares no examples with training")
FEWEST = 5  # shared examples; a handful may be equal in any large collection
SHARE = 0.05  # of the validation examples; public data sets hold more than 1 % of copies
ABOVE_CHANCE = 3.0  # times as often as examples repeat within the training data


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a loader; `after` is the loader that was trained from before it."""

    batches: int = 0
    trained: int = 0
    is_whole: bool = False
    after: int | None = None


@dataclass(frozen=True, slots=True)
class LoaderExamples:
    """What a loader gave: marks of its examples, and where in a dataset they stand.

    `indices` is None where all of the dataset is read; `is_plain` says that nothing else selects.
    """

    id: int
    dataset: int = 0
    size: int | None = None
    is_shuffled: bool = False
    is_plain: bool = False
    has_replacement: bool = False
    is_peeked: bool = False
    indices: frozenset[int] | None = None
    met: int = 0
    repeated: int = 0
    rows: frozenset[str] = frozenset()
    passes: tuple[Pass, ...] = field(default=())

    @property
    def trained(self) -> int:
        return sum(p.trained for p in self.passes)


@dataclass(frozen=True, slots=True)
class Shared:
    """What two loaders have in common: "same", "shared" or "none", in words."""

    kind: str
    says: str
    share: float = 0.0


def read_examples(folder: Path) -> tuple[LoaderExamples, ...]:
    """Read what the loaders of the process with the most steps gave."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob(".fingerprints-*")):
        if path.suffix:
            continue  # a draft
        try:
            found.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    best = max(found, key=lambda told: int(told["steps"]), default=None)
    return () if best is None else tuple(_examples(told) for told in best["loaders"])


def _examples(told: Mapping[str, Any]) -> LoaderExamples:
    chosen = told["indices"]
    return LoaderExamples(
        id=told["id"],
        dataset=told["dataset"],
        size=told["size"],
        is_shuffled=told["is_shuffled"],
        is_plain=told["is_plain"],
        has_replacement=told["has_replacement"],
        is_peeked=told["is_peeked"],
        indices=None if chosen is None else frozenset(chosen),
        met=told["met"],
        repeated=told["repeated"],
        rows=frozenset(told["rows"]),
        passes=tuple(
            Pass(p["batches"], p["trained"], p["is_whole"], p["after"]) for p in told["passes"]
        ),
    )


def overlap(loaders: Sequence[LoaderExamples], folder: str = "") -> Check:
    """Judge whether what is evaluated on was trained on."""
    if not any(x.trained for x in loaders):
        return unjudged(*OVERLAP, "the training data does not come through a DataLoader")
    found = [shared_by(train, held) for train, held in _pairs(loaders)]
    known = [shared for shared in found if shared is not None]
    if not known:
        return unjudged(*OVERLAP, "no loader of validation data was met")
    worst = max(known, key=lambda shared: shared.share)
    cited = Evidence(worst.says, folder or "fingerprints", "loaders", None, {"share": worst.share})
    kinds = {shared.kind for shared in known}
    if kinds == {"shared"}:
        fix = "split the data once, before anything else, and keep the indices apart"
        return Check(*OVERLAP, Outcome.FAILED, worst.says, (cited,), Severity.HIGH, fix)
    if "none" in kinds and "shared" not in kinds:
        says = next(shared.says for shared in known if shared.kind == "none")
        return passed(*OVERLAP, says, cited)
    if kinds == {"same"}:
        return unjudged(*OVERLAP, f"{worst.says}; no held-out data was met", cited)
    return unjudged(*OVERLAP, f"{worst.says}; another loader shares none", cited)


def _pairs(loaders: Sequence[LoaderExamples]) -> Iterator[tuple[LoaderExamples, LoaderExamples]]:
    """Yield what was trained on and what was evaluated on afterwards, each pair once.

    A loader that nobody has asked yet stands for validation only where none was met.
    """
    by_id = {x.id: x for x in loaders}
    evaluated = {
        (p.after, x.id)
        for x in loaders
        for p in x.passes
        if p.is_whole and not p.trained and p.after not in (None, x.id)
    }
    for after, tested in sorted(evaluated, key=str):
        if after is not None and after in by_id:
            yield by_id[after], by_id[tested]
    if evaluated:
        return
    main = max(loaders, key=lambda x: x.trained)
    for held in loaders:
        is_idle = held.trained < 2 and held is not main
        if is_idle and not held.is_shuffled and (held.is_peeked or held.passes):
            yield main, held


def shared_by(train: LoaderExamples, held: LoaderExamples) -> Shared | None:
    """Return what two loaders have in common; None where that cannot be told."""
    if train.dataset == held.dataset and train.is_plain and held.is_plain:
        return _by_index(train, held)
    if not train.rows or not held.rows:
        return None
    common = len(train.rows & held.rows)
    taken = max(len(train.rows), train.met)
    coverage = min(1.0, taken / train.size) if train.size else 1.0
    part = common / len(held.rows)
    of = f"{common} of {len(held.rows)} validation examples seen"
    whole = f" of {train.size}" if train.size and coverage < 1.0 else ""
    says = f"{of} are among {taken}{whole} training examples"
    is_all = part == 1.0 and coverage == 1.0 and len(held.rows) == len(train.rows)
    if is_all and not train.repeated:
        return Shared("same", f"evaluation reads the training examples themselves: {says}", 1.0)
    estimate = min(1.0, part / max(coverage, 1e-9))
    is_many = common >= FEWEST and estimate >= SHARE
    if is_many and part > ABOVE_CHANCE * _chance(train, held) + 0.01 * coverage:
        return Shared("shared", says, estimate)
    usual = ", as often as they repeat within training" if is_many else ""
    return Shared("none", f"{says}{usual}")


def _chance(train: LoaderExamples, held: LoaderExamples) -> float:
    """Return how often an example repeats by itself: data may hold few different ones."""
    if not train.has_replacement:
        return train.repeated / max(1, train.met)
    return min(1.0, held.repeated / max(1, held.met) * len(train.rows) / max(1, len(held.rows)))


def _by_index(train: LoaderExamples, held: LoaderExamples) -> Shared:
    if train.indices == held.indices:
        return Shared("same", "evaluation reads the training examples themselves", 1.0)
    if held.indices is None:
        part, of = len(train.indices or ()) / max(1, held.size or 1), held.size or 0
    elif train.indices is None:
        part, of = 1.0, len(held.indices)
    else:
        part = len(train.indices & held.indices) / max(1, len(held.indices))
        of = len(held.indices)
    says = f"{part:.1%} of {of} validation examples are in the training subset, by their indices"
    return Shared("shared" if part * of >= FEWEST and part >= 0.01 else "none", says, part)
