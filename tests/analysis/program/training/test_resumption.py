"""What a resumed run, and each rank of several, goes on with."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.augmentation import augmented_evaluations
from traindx.analysis.program.training.idle_parts import idle_parts
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.rank_shares import uneven_shares
from traindx.analysis.program.training.resumed_order import lost_orders
from traindx.detectors.checkpoints import data_order_restarted
from traindx.detectors.data import random_validation_transform
from traindx.detectors.distributed import ranks_with_uneven_shards
from traindx.detectors.generalisation import evaluation_on_train_loader
from traindx.model.run import Run

ASKED = (
    (lost_orders, data_order_restarted, "cut by hand", "near miss: its state is restored"),
    (uneven_shares, ranks_with_uneven_shards, "a generator", "near miss: one process"),
    (idle_parts, evaluation_on_train_loader, "the wrong part", "the right part"),
    (
        augmented_evaluations,
        random_validation_transform,
        "a hook on every batch",
        "near miss: a hook that asks for the phase",
    ),
)


def _answers(question: object, run: Run) -> list[object]:
    return [found for story in program_of(run).stories for found in question(story)]  # type: ignore[operator]


@pytest.mark.parametrize(("question", "rule", "yes", "no"), ASKED)
def test_a_question_is_answered(question: object, rule: object, yes: str, no: str) -> None:
    assert _answers(question, rule.FIRES[yes])  # type: ignore[attr-defined]
    assert not _answers(question, rule.SILENT[no])  # type: ignore[attr-defined]


def test_a_lost_order_names_what_gives_it() -> None:
    found = _answers(lost_orders, data_order_restarted.FIRES["no shuffling"])
    assert found[0].order.maker.endswith("DataLoader")  # type: ignore[attr-defined]
