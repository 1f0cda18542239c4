"""MLflow's file store and database as mlflow writes them (3.17), and as damage leaves them."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.readers.damage import few, mutated, survive

from traindx import open_run
from traindx.errors import UnreadableArtifact
from traindx.readers.formats.mlflow import database, run_folder

META = """artifact_uri: file:///x/mlruns/0/{id}/artifacts
end_time: 1794782064887
experiment_id: '0'
lifecycle_stage: active
run_id: {id}
run_name: {name}
status: {status}
tags: []
"""
# the columns and keys that mlflow 3.17.2 creates, without its other tables
SCHEMA = """
CREATE TABLE "runs" (run_uuid VARCHAR(32) NOT NULL, name VARCHAR(250), status VARCHAR(9),
 start_time BIGINT, end_time BIGINT, lifecycle_stage VARCHAR(20), experiment_id INTEGER,
 CONSTRAINT run_pk PRIMARY KEY (run_uuid));
CREATE TABLE "metrics" ("key" VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,
 run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,
 CONSTRAINT metric_pk PRIMARY KEY ("key", timestamp, step, run_uuid, value, is_nan));
CREATE TABLE "params" ("key" VARCHAR(250) NOT NULL, value VARCHAR(8000) NOT NULL,
 run_uuid VARCHAR(32) NOT NULL, CONSTRAINT param_pk PRIMARY KEY ("key", run_uuid));
"""
REAL = """
import mlflow
mlflow.set_tracking_uri("file:mlruns")
with mlflow.start_run(run_name="first"):
    mlflow.log_params({"lr": 0.1, "optimizer/name": "adam"})
    for i in range(10):
        value = float("nan") if i == 7 else float("inf") if i == 8 else 1 / (i + 1)
        mlflow.log_metric("train/loss", value, step=i)
"""


def write_run(store: Path, name: str, losses: list[str], status: int = 3, exp: str = "0") -> Path:
    folder = store / exp / (name * 32)[:32]
    (folder / "metrics" / "train").mkdir(parents=True)
    (folder / "params" / "optimizer").mkdir(parents=True)
    meta = META.format(id=folder.name, name=name, status=status)
    (folder / "meta.yaml").write_text(meta)
    (folder / "metrics" / "train" / "loss").write_text(
        "".join(f"17947820648{i:02d} {v} {i}\n" for i, v in enumerate(losses))
    )
    (folder / "params" / "lr").write_text("0.1")
    (folder / "params" / "optimizer" / "name").write_text("adam")
    return folder


def write_database(path: Path, runs: dict[str, int]) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    for order, (name, count) in enumerate(runs.items()):
        run = (name * 32)[:32]
        connection.execute(
            "INSERT INTO runs VALUES (?, ?, 'FAILED', ?, 0, 'active', 0)", (run, name, order)
        )
        connection.execute("INSERT INTO params VALUES ('optimizer/lr', '0.1', ?)", (run,))
        for i in range(count):
            value = 0.0 if i == 7 else -1.7976931348623157e308 if i == 8 else 1 / (i + 1)
            row = ("train/loss", value, 1000 + i, run, i, i == 7)
            connection.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    return path


def test_a_run_that_mlflow_wrote(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    environment = {**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true"}
    subprocess.run(
        [sys.executable, "-c", REAL], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    run = open_run(tmp_path / "mlruns")
    loss = run.series["loss/train"]
    assert len(loss) == 10 and np.isnan(loss.values[7]) and np.isinf(loss.values[8])
    assert loss.steps.tolist() == list(range(10))
    assert loss.origin.artifact.endswith("metrics/train/loss") and loss.where(3) == "line 4"
    assert {s.key: s.value for s in run.config.settings} == {"lr": 0.1, "optimizer.name": "adam"}


def test_of_several_runs_one_is_read_and_the_others_named(tmp_path: Path) -> None:
    old = write_run(tmp_path, "a", ["1.0", "0.5"])
    write_run(tmp_path, "b", ["3.0", "2.0", "nan"], status=4, exp="1")
    for file in old.rglob("*"):
        os.utime(file, (1, 1))
    run = open_run(tmp_path)
    assert run.series["loss/train"].values[:2].tolist() == [3.0, 2.0]
    assert any("it holds 2 runs" in w for a in run.artifacts for w in a.warnings)
    assert [e.text for e in run.events if e.kind == "exit"] == ["MLflow recorded the run as failed"]


def test_a_metric_alone_and_a_cut_line(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "a", ["1.0", "0.5"])
    file = folder / "metrics" / "train" / "loss"
    file.write_text(file.read_text() + "17947")
    run = open_run(file)
    assert run.series["loss/train"].values.tolist() == [1.0, 0.5]
    assert "1 lines are no points" in run.artifacts[0].warnings


def test_old_lines_without_a_step(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "a", [])
    (folder / "metrics" / "val_loss").write_text("1700000000 1.0\n1700000001 0.5\n1700000002 0.4\n")
    series = open_run(folder).series["loss/val"]
    assert series.values.tolist() == [1.0, 0.5, 0.4] and series.axis == "point"


def test_the_database(tmp_path: Path) -> None:
    path = write_database(tmp_path / "mlflow.db", {"a": 12, "b": 10, "c": 0})
    run = open_run(path)
    loss = run.series["loss/train"]
    assert run.config.number("lr") == 0.1
    assert len(loss) == 10 and np.isnan(loss.values[7]) and loss.values[8] == -np.inf
    assert any("it holds 3 runs; this is b" in w for w in run.artifacts[0].warnings)
    assert [e.kind for e in run.events if e.kind == "exit"] == ["exit"]


def test_reading_leaves_the_database_as_it_is(tmp_path: Path) -> None:
    path = write_database(tmp_path / "mlflow.db", {"a": 5})
    before = path.read_bytes()
    path.chmod(0o444)
    database.read(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["mlflow.db"]


def test_a_view_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mlflow.db"
    connection = sqlite3.connect(path)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS run_uuid FROM n"
    connection.executescript(f"CREATE VIEW runs AS {endless}; CREATE VIEW metrics AS {endless};")
    connection.close()
    monkeypatch.setattr(database, "MAX_SECONDS", 1.0)
    started = time.monotonic()
    with pytest.raises(UnreadableArtifact):
        database.read(path)
    assert time.monotonic() - started < 10


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE users (name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(UnreadableArtifact):
        database.read(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_database(tmp_path_factory.mktemp("db") / "m.db", {"a": 60, "b": 40}).read_bytes()


@given(st.data())
@few
def test_any_damage_of_the_database_is_survived(whole: bytes, data: st.DataObject) -> None:
    survive(database.read, data.draw(mutated(whole)), "mlflow.db")


@given(st.binary(max_size=500))
@few
def test_any_bytes_for_a_database(data: bytes) -> None:
    survive(database.read, database.MAGIC + data, "mlflow.db")


@given(mutated(b"".join(b"1794782064%03d 0.5 %d\n" % (i, i) for i in range(50))) | st.binary())
@few
def test_any_bytes_for_a_metric(data: bytes) -> None:
    survive(run_folder.read, data, "metrics/train/loss")


@given(mutated(META.format(id="a" * 32, name="x", status=1).encode()) | st.binary())
@few
def test_any_bytes_for_a_description(data: bytes) -> None:
    survive(run_folder.read, data, "meta.yaml")
