"""JSON as trainers, trackers and pandas write it, and as damage leaves it."""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx.errors import UnreadableArtifact
from traindx.model.run import Run
from traindx.readers.formats.structured.reader import read, sniff


def write(folder: Path, data: Any, name: str = "metrics.json") -> Path:
    path = folder / name
    text = data if isinstance(data, (str, bytes)) else json.dumps(data)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def sniffed(path: Path) -> float:
    return sniff(path, path.read_bytes()[: 64 << 10])


def values(run: Run, name: str) -> list[float]:
    return run.series[name].values.tolist()


def trainer_state(steps: int = 5) -> dict[str, Any]:
    history: list[dict[str, Any]] = []
    for i in range(1, steps + 1):
        history.append({"epoch": i / 2, "grad_norm": 1.5, "learning_rate": 1e-4, "loss": 3 / i,
                        "step": 10 * i})  # fmt: skip
    history.append({"epoch": steps / 2, "eval_accuracy": 0.5, "eval_loss": 0.9,
                    "eval_runtime": 3.2, "step": 10 * steps})  # fmt: skip
    history.append({"epoch": steps / 2, "step": 10 * steps, "total_flos": 1e12, "train_loss": 0.7,
                    "train_runtime": 60.0, "train_samples_per_second": 5.0})  # fmt: skip
    return {"best_metric": None, "epoch": steps / 2, "global_step": 10 * steps,
            "is_world_process_zero": True, "log_history": history, "max_steps": 100,
            "num_train_epochs": 3, "train_batch_size": 4}  # fmt: skip


def test_trainer_state(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps(trainer_state(), indent=2), "trainer_state.json")
    run = read(path)
    assert sniffed(path) > 0.9
    assert values(run, "loss/train") == [3.0, 1.5, 1.0, 0.75, 0.6]
    assert values(run, "loss/val") == [0.9]
    assert "loss/train@2" not in run.series, "the summary is no point of the loss"
    assert run.series["loss/train"].epochs.tolist() == [0.5, 1.0, 1.5, 2.0, 2.5]
    assert [e.kind for e in run.events] == ["summary"]
    assert run.config.number("train_batch_size") == 4
    assert run.config.find("global_step") is None
    lines = path.read_text().split("\n")
    place = int(run.series["loss/train"].where(2).removeprefix("line "))
    assert '"step": 30' in "".join(lines[place - 1 : place + 6])


def test_json_lines_with_nested_metrics(tmp_path: Path) -> None:
    rows = [{"_step": i, "_timestamp": 1.7e9 + i, "train": {"loss": 1 / (i + 1)}, "metrics":
             {"val_acc": 0.1 * i}} for i in range(4)]  # fmt: skip
    path = write(tmp_path, "\n".join(map(json.dumps, rows)), "wandb-history.jsonl")
    run = read(path)
    assert sniffed(path) > 0.9
    assert set(run.series) == {"loss/train", "accuracy/val"}
    assert run.series["loss/train"].where(3) == "line 4"
    assert run.series["loss/train"].steps.tolist() == [0, 1, 2, 3]


def test_a_damaged_line_costs_only_itself(tmp_path: Path) -> None:
    lines = [json.dumps({"step": i, "loss": 1 / (i + 1)}) for i in range(6)]
    lines[2] = lines[2][:9]
    lines.append('{"step": 6, "lo')
    run = read(write(tmp_path, "\n".join(lines), "log.jsonl"))
    assert run.series["loss/train"].steps.tolist() == [0, 1, 3, 4, 5]
    assert "2 lines" in run.artifacts[0].warnings[0]
    assert "line 3" in run.artifacts[0].warnings[0]


def test_nan_and_infinity_are_accepted(tmp_path: Path) -> None:
    text = '[{"step": 1, "loss": 2}, {"step": 2, "loss": Infinity}, {"step": 3, "loss": NaN}]'
    loss = read(write(tmp_path, text)).series["loss/train"].values
    assert loss[0] == 2
    assert math.isinf(loss[1])
    assert math.isnan(loss[2])


@pytest.mark.parametrize(
    "data",
    [
        [{"epoch": i, "train_loss": v} for i, v in enumerate([3.0, 2.0, 1.0])],
        {"epoch": [0, 1, 2], "train_loss": [3.0, 2.0, 1.0]},
        {"history": {"train_loss": [3.0, 2.0, 1.0]}, "params": {"verbose": 1}},
        {"train": {"loss": [3.0, 2.0, 1.0]}},
        {"loss": {"train": [3.0, 2.0, 1.0]}},
        {"train": [{"epoch": i, "loss": v} for i, v in enumerate([3.0, 2.0, 1.0])]},
        {f"epoch_{i}": {"train_loss": v} for i, v in enumerate([3.0, 2.0, 1.0])},
        {str(i): {"train": {"loss": v}} for i, v in enumerate([3.0, 2.0, 1.0])},
        {"train_loss": {str(i): v for i, v in enumerate([3.0, 2.0, 1.0])}},
        {"columns": ["epoch", "loss"], "index": [0, 1, 2], "data": [[0, 3.0], [1, 2.0], [2, 1.0]]},
        {"train_loss": [[0, 3.0], [1, 2.0], [2, 1.0]]},
        {"train_loss": [{"step": i, "value": v} for i, v in enumerate([3.0, 2.0, 1.0])]},
        [{"key": k, "value": v, "step": i, "timestamp": 1}
         for i, v in enumerate([3.0, 2.0, 1.0]) for k in ("train_loss", "lr")],
        {"results": {"metrics": [{"step": i, "loss": str(v)} for i, v in
                                 enumerate([3.0, 2.0, 1.0])]}},
    ],
)  # fmt: skip
def test_the_many_shapes_of_a_history(tmp_path: Path, data: Any) -> None:
    path = write(tmp_path, data)
    assert values(read(path), "loss/train") == [3.0, 2.0, 1.0]
    assert sniffed(path) >= 0.8


def test_a_tensorboard_download(tmp_path: Path) -> None:
    run = read(write(tmp_path, [[1.7e9, 0, 3.0], [1.7e9, 10, 2.0]], "run-a-tag-val_loss.json"))
    assert run.series["loss/val"].steps.tolist() == [0, 10]


def test_keras_history_counts_epochs_where_it_validates(tmp_path: Path) -> None:
    run = read(write(tmp_path, {"loss": [3.0, 2.0], "val_loss": [3.0, 2.5], "lr": [0.1, 0.1]}))
    assert run.series["loss/val"].axis == "epoch"
    assert run.series["loss/val"].where(1) == "entry 2"
    assert read(write(tmp_path, {"loss": [3.0, 2.0, 1.0]})).series["loss/train"].axis == "point"


def test_lists_of_different_lengths(tmp_path: Path) -> None:
    run = read(write(tmp_path, {"train_loss": [1.0 / i for i in range(1, 101)],
                                "val_loss": [1.0, 0.5]}))  # fmt: skip
    assert len(run.series["loss/train"]) == 100
    assert len(run.series["loss/val"]) == 2


def test_gaps_are_no_numbers(tmp_path: Path) -> None:
    run = read(write(tmp_path, {"epoch": [1, 2, 3], "val_loss": [None, 0.5, None]}))
    assert run.series["loss/val"].steps.tolist() == [2]


def test_a_mapping_of_plain_values_is_a_configuration(tmp_path: Path) -> None:
    data = {"lr": 0.1, "optimizer": {"name": "sgd", "betas": [0.9, 0.99]}, "loss": "mse",
            "layers": [{"units": 64}, {"units": 32}]}  # fmt: skip
    path = write(tmp_path, json.dumps(data, indent=1), "config.json")
    run = read(path)
    assert not run.series
    assert run.config.number("lr") == 0.1
    betas = run.config.find("betas")
    assert betas is not None
    assert betas.key == "optimizer.betas"
    assert '"betas"' in path.read_text().split("\n")[int(betas.locator[5:]) - 1]
    assert sniffed(path) >= 0.8


def test_a_truncated_document_yields_its_whole_records(tmp_path: Path) -> None:
    text = json.dumps(trainer_state(50), indent=2)
    path = write(tmp_path, text[: len(text) // 2], "trainer_state.json")
    run = read(path)
    assert sniffed(path) > 0.9
    assert 20 < len(run.series["loss/train"]) < 30
    assert "damaged" in run.artifacts[0].warnings[0]


def test_a_truncated_history_of_lists(tmp_path: Path) -> None:
    text = json.dumps({"loss": [1.5, 1.25, 1.0], "val_loss": [2.5, 2.25, 2.125]})
    run = read(write(tmp_path, text[:-4]))
    assert values(run, "loss/train") == [1.5, 1.25, 1.0]
    assert values(run, "loss/val") == [2.5, 2.25]


def test_records_after_the_damage_are_read_too(tmp_path: Path) -> None:
    records = [json.dumps({"step": i, "loss": 1 / (i + 1)}) for i in range(20)]
    records[10] = '{"step": 10, "loss": oops}'
    run = read(write(tmp_path, "[" + ",".join(records) + "]"))
    assert run.series["loss/train"].steps.tolist() == [i for i in range(20) if i != 10]


def test_documents_one_after_another(tmp_path: Path) -> None:
    text = "\n".join(json.dumps({"epoch": i, "loss": 1 / (i + 1)}, indent=2) for i in range(4))
    assert len(read(write(tmp_path, text)).series["loss/train"]) == 4


def test_one_record_per_line_inside_brackets(tmp_path: Path) -> None:
    text = "[\n" + ",\n".join(json.dumps({"step": i, "loss": 1.0}) for i in range(4)) + "\n]\n"
    run = read(write(tmp_path, text))
    assert len(run.series["loss/train"]) == 4
    assert run.series["loss/train"].where(0) == "line 2"
    assert not run.artifacts[0].warnings


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"step": 1, "x": ' * 5000])
def test_deep_nesting_is_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    sniffed(path)
    with contextlib.suppress(UnreadableArtifact):
        read(path)


def test_deep_but_whole(tmp_path: Path) -> None:
    text = '{"a":' * 300 + "1" + "}" * 300
    with contextlib.suppress(UnreadableArtifact):
        read(write(tmp_path, text))


def test_a_huge_integer(tmp_path: Path) -> None:
    text = '[{"step": 1, "loss": 0.5, "n": ' + "9" * 6000 + '}, {"step": 2, "loss": 0.4}]'
    assert values(read(write(tmp_path, text)), "loss/train") == [0.5, 0.4]
    text = '{"step": 1, "loss": 0.5, "n": ' + "9" * 400 + '}\n{"step": 2, "loss": 0.4}'
    assert values(read(write(tmp_path, text)), "loss/train") == [0.5, 0.4]


def test_a_gigantic_document_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traindx.readers.formats.structured.reader.MAX_BYTES", 100_000)
    records = [{"step": i, "loss": 1.0} for i in range(20_000)]
    run = read(write(tmp_path, json.dumps(records)))
    assert 1000 < len(run.series["loss/train"]) < 20_000
    assert "only the first" in run.artifacts[0].warnings[0]


@pytest.mark.parametrize("data", [b"", b"  \n", b"\x00\x01" * 500, b"{]", b"not json"])
def test_what_holds_nothing_is_unreadable(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, data)
    assert sniffed(path) < 0.3
    with pytest.raises(UnreadableArtifact):
        read(path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[2024-01-01 10:00] loss 0.5\n[2024-01-01 10:01] loss 0.4\n", "train.log"),
        ("{'loss': 0.5, 'epoch': 1}\n{'loss': 0.4, 'epoch': 2}\n", "train.log"),
        ('{"name": "x", "version": "1.0"}', "package.json"),
        ('{"images": [{"id": 1, "file": "a.png"}], "annotations": []}', "coco.json"),
        ("step,loss\n1,0.5\n", "metrics.csv"),
    ],
)
def test_what_tells_of_no_run_sniffs_low(tmp_path: Path, text: str, name: str) -> None:
    assert sniffed(write(tmp_path, text, name)) < 0.3


def test_validation_in_the_name_of_the_file(tmp_path: Path) -> None:
    assert "loss/val" in read(write(tmp_path, [{"step": 1, "loss": 1.0}], "eval.json")).series


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(10**6), 10**6) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["loss", "epoch", "step", "val_loss", "0", "1", "data",
                                       "columns", "value", "key", "train_runtime", "x"]),
                      inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(json_values, st.integers(0, 200))
def test_any_document_is_read_or_refused(data: Any, cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(data)
        for part in (text, text[: max(1, len(text) - cut)]):
            path = write(Path(folder), part)
            assert 0.0 <= sniffed(path) <= 1.0
            with contextlib.suppress(UnreadableArtifact):
                run = read(path)
                assert all(np.isfinite(s.steps).any() or len(s) for s in run.series.values())


@given(st.lists(json_values, min_size=1, max_size=5))
def test_any_lines_are_read_or_refused(rows: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "\n".join(map(json.dumps, rows)), "log.jsonl")
        with contextlib.suppress(UnreadableArtifact):
            read(path)


def test_settings_beside_each_record_tell_runs_apart(tmp_path: Path) -> None:
    records = [
        {"config": {"lr": 10.0**-k, "batch_size": 16 * k}, "epoch": e, "loss": k / (e + 1)}
        for k in (1, 2)
        for e in range(4)
    ]
    path = write(tmp_path, "\n".join(map(json.dumps, records)), "results.jsonl")
    run = read(path)
    assert set(run.series) == {"loss/train", "loss/train@2"}
    assert all(len(s) == 4 for s in run.series.values())


def test_the_cross_entropy_beside_its_total_is_a_term(tmp_path: Path) -> None:
    records = [
        {"epoch": e, "train_loss": 9.0 / (e + 1), "train_loss_ce": 2.0 / (e + 1)} for e in range(4)
    ]
    path = write(tmp_path, "\n".join(map(json.dumps, records)), "log.jsonl")
    run = read(path)
    assert set(run.series) == {"loss/train", "loss/train/ce"}
    assert run.series["loss/train"].values[0] == 9.0
