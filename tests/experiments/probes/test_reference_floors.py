"""Simple models on examples whose answer is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from traindx.experiments.probes.conclusions import floors_in, remarks_on_floors
from traindx.experiments.probes.reference_floors import ExampleSet, floors_of, read_examples


def classes(seed: int = 0) -> ExampleSet:
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, 600)
    x = np.eye(3)[y] * 4 + random.normal(size=(600, 3))
    return ExampleSet(x[:400], y[:400, None], x[400:], y[400:, None])


def values(seed: int = 0) -> ExampleSet:
    random = np.random.default_rng(seed)
    x = random.normal(size=(600, 4))
    y = x @ [1.0, -2.0, 0.5, 0.0] + 100 + 0.1 * random.normal(size=600)
    return ExampleSet(x[:400], y[:400, None], x[400:], y[400:, None])


def write(folder: Path, **tables: NDArray[np.float64]) -> None:
    header = json.dumps({name: table.shape for name, table in tables.items()}).encode()
    data = b"".join(table.astype(np.float64).tobytes() for table in tables.values())
    (folder / ".examples-1.bin").write_bytes(header + b"\n" + data)


def test_classes_that_are_apart_are_found_by_all_but_a_constant() -> None:
    found = floors_of(classes(), "classes")
    assert found["constant"].score < 0.45
    assert found["constant"].loss == pytest.approx(np.log(3), abs=0.05)
    assert found["linear"].score > 0.9
    assert found["nearest_neighbour"].score > 0.9
    assert found["linear"].loss < 0.5


def test_a_linear_function_is_found_by_a_linear_model() -> None:
    found = floors_of(values(), "values")
    assert found["constant"].loss == pytest.approx(5.25, rel=0.25)
    assert found["linear"].loss < 0.05
    assert found["linear"].loss < found["nearest_neighbour"].loss < found["constant"].loss


def test_examples_that_are_no_numbers_have_no_floor() -> None:
    broken = values()
    broken.x[3, 1] = np.nan
    assert floors_of(broken, "values") == {}


def test_held_out_examples_that_are_trained_on_do_not_count(tmp_path: Path) -> None:
    given = values()
    write(
        tmp_path,
        x=given.x,
        y=given.y,
        held_x=np.vstack([given.x[:100], given.held_x]),
        held_y=np.vstack([given.y[:100], given.held_y]),
    )
    read = read_examples(tmp_path)
    assert read is not None
    assert read.is_held_out
    assert len(read.held_x) == 200


def test_without_held_out_examples_a_part_of_the_others_is_kept_back(tmp_path: Path) -> None:
    given = values()
    write(tmp_path, x=given.x, y=given.y)
    read = read_examples(tmp_path)
    assert read is not None
    assert not read.is_held_out
    assert len(read.x) + len(read.held_x) == 400


def test_a_damaged_file_is_no_examples(tmp_path: Path) -> None:
    for damaged in (b"no header", b'{"x": [1000000, 4]}\n123', b'{"x": 3}\n', b"[1]\n"):
        (tmp_path / ".examples-1.bin").write_bytes(damaged)
        assert read_examples(tmp_path) is None


def test_floors_are_in_the_units_of_the_metric() -> None:
    found = floors_of(classes(), "classes")
    assert floors_in("accuracy/val", found)["linear"] == found["linear"].score
    assert floors_in("loss/val", found)["linear"] == found["linear"].loss
    assert floors_in("f1/val", found) == {}


def test_a_run_at_the_constant_has_learnt_nothing() -> None:
    said = remarks_on_floors("accuracy/val", 0.34, {"constant": 0.33, "linear": 0.93})
    assert "constant prediction" in said[0]
    assert "a linear model" in said[1]
    assert remarks_on_floors("accuracy/val", 0.92, {"constant": 0.33, "linear": 0.93}) == []
    assert remarks_on_floors("mse/val", 0.1, {"constant": 5.0, "linear": 0.05}) == []
