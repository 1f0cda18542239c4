"""Tables as the real libraries write them, and as damage leaves them."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx.errors import UnreadableArtifact
from traindx.model.run import Run
from traindx.readers.formats.table.reader import read, sniff
from traindx.readers.formats.table.table_layout import number


def write(folder: Path, text: str | bytes, name: str = "metrics.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def sniffed(path: Path) -> float:
    return sniff(path, path.read_bytes()[: 64 << 10])


def values(run: Run, name: str) -> list[float]:
    return run.series[name].values.tolist()


LIGHTNING = """epoch,lr-AdamW,step,train_loss_epoch,train_loss_step,val_loss
,0.001,0,,,
0,,49,,2.5,
0,,99,,2.0,
0,,99,,,1.9
0,,99,2.25,,
,0.0005,100,,,
1,,149,,1.5,
1,,199,,,1.4
"""


def test_lightning_has_sparse_columns_and_several_rows_per_step(tmp_path: Path) -> None:
    path = write(tmp_path, LIGHTNING)
    run = read(path)
    assert sniffed(path) > 0.9
    assert values(run, "loss/train") == [2.5, 2.0, 1.5]
    assert run.series["loss/train"].steps.tolist() == [49, 99, 149]
    assert run.series["loss/train"].epochs.tolist() == [0, 0, 1]
    assert values(run, "loss/val") == [1.9, 1.4]
    assert values(run, "lr") == [0.001, 0.0005]
    assert values(run, "loss/train@2") == [2.25]
    assert run.series["loss/val"].where(0) == "line 5"
    assert not run.artifacts[0].warnings


def test_keras_csv_logger_in_a_file_called_log(tmp_path: Path) -> None:
    path = write(tmp_path, "epoch,accuracy,loss,val_accuracy,val_loss\n0,.5,1.2,.4,1.3\n"
                           "1,.6,1.1,.45,1.25\n", "training.log")  # fmt: skip
    run = read(path)
    assert sniffed(path) > 0.9
    assert set(run.series) == {"accuracy/train", "loss/train", "accuracy/val", "loss/val"}
    assert run.series["loss/val"].axis == "epoch"
    assert run.series["loss/val"].when(1) == "epoch 1"


def test_ultralytics_pads_its_names(tmp_path: Path) -> None:
    header = ["epoch", "train/box_loss", "metrics/mAP_0.5", "metrics/mAP_0.5:0.95", "val/box_loss"]
    lines = [",".join(f"{h:>20}" for h in header)]
    lines += [",".join(f"{v:>20.5g}" for v in (i, 0.1 / (i + 1), 0.2, 0.1, 0.3)) for i in range(5)]
    path = write(tmp_path, "\n".join(lines) + "\n", "results.csv")
    run = read(path)
    assert sniffed(path) > 0.9
    assert {"loss/train/box", "map/val/50", "map/val", "loss/val/box"} == set(run.series)


def test_long_format_with_tags(tmp_path: Path) -> None:
    rows = ["step,tag,value,wall_time"]
    for i in range(4):
        rows += [f"{i},train/loss,{1.0 / (i + 1)},170000000{i}", f"{i},lr,0.1,170000000{i}"]
    path = write(tmp_path, "\n".join(rows))
    run = read(path)
    assert sniffed(path) >= 0.8
    assert values(run, "loss/train") == [1.0, 0.5, 1 / 3, 0.25]
    assert set(run.series) == {"loss/train", "lr"}


def test_a_column_may_name_the_phase(tmp_path: Path) -> None:
    run = read(write(tmp_path, "epoch,phase,loss,acc\n0,train,2,.1\n0,val,3,.2\n1,train,1,.3\n"
                               "1,val,2.5,.25\n"))  # fmt: skip
    assert values(run, "loss/train") == [2, 1]
    assert values(run, "loss/val") == [3, 2.5]
    assert values(run, "accuracy/val") == [0.2, 0.25]


def test_several_seeds_stay_apart(tmp_path: Path) -> None:
    rows = ["seed,epoch,val_loss"]
    rows += [f"{s},{e},{1.0 / (e + 1) + 0.1 * s}" for s in (1, 2, 3) for e in range(5)]
    run = read(write(tmp_path, "\n".join(rows)))
    assert set(run.series) == {"loss/val", "loss/val@2", "loss/val@3"}
    assert all(len(s) == 5 for s in run.series.values())


def test_wandb_export(tmp_path: Path) -> None:
    text = '"Step","brave-sun-1 - loss","brave-sun-1 - loss__MIN","brave-sun-1 - loss__MAX"\n'
    text += "".join(f'"{i}","{1 / (i + 1)}","{1 / (i + 1)}","{1 / (i + 1)}"\n' for i in range(5))
    run = read(write(tmp_path, text))
    assert set(run.series) == {"loss/train"}
    assert len(run.series["loss/train"]) == 5


def test_tensorboard_export_has_its_name_in_the_file(tmp_path: Path) -> None:
    text = "Wall time,Step,Value\n1700000000.1,0,2.5\n1700000001.1,1,2.25\n"
    run = read(write(tmp_path, text, "run-version_0-tag-val_loss.csv"))
    assert values(run, "loss/val") == [2.5, 2.25]
    assert set(run.series) == {"loss/val"}


def test_a_history_without_an_epoch_has_a_row_per_epoch(tmp_path: Path) -> None:
    run = read(write(tmp_path, "loss,acc,val_loss,val_acc\n1.5,.1,1.6,.1\n1.25,.2,1.5,.15\n"))
    assert run.series["loss/val"].axis == "epoch"
    assert run.series["loss/train"].steps.tolist() == [0, 1]
    assert read(write(tmp_path, "loss\n1.5\n1.25\n")).series["loss/train"].axis == "point"


def test_pandas_index_is_no_metric(tmp_path: Path) -> None:
    run = read(write(tmp_path, ",epoch,loss\n0,1,0.5\n1,2,0.4\n2,3,0.3\n"))
    assert set(run.series) == {"loss/train"}
    assert run.series["loss/train"].steps.tolist() == [1, 2, 3]


def test_rows_may_be_one_longer_than_their_header(tmp_path: Path) -> None:
    run = read(write(tmp_path, "epoch loss\n1 1 0.5\n2 2 0.4\n3 3 0.3\n", "table.txt"))
    assert values(run, "loss/train") == [0.5, 0.4, 0.3]


def test_decimal_comma_with_semicolons(tmp_path: Path) -> None:
    path = write(tmp_path, "step;loss;acc\n1;0,75;0,1\n2;0,5;0,2\n1.000;0,25;0,3\n")
    run = read(path)
    assert sniffed(path) > 0.9
    assert values(run, "loss/train") == [0.75, 0.5, 0.25]
    assert run.series["accuracy/train"].values.tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("1e-3", 1e-3), (" 2.5 ", 2.5), ("95.2%", 95.2), ("1,234.5", 1234.5), ('"7"', 7.0),
     ("tensor(0.25, device='cuda:0')", 0.25), ("tensor(0.5)", 0.5), ("[0.75]", 0.75),
     ("inf", math.inf), ("-Infinity", -math.inf), ("word", None), ("", None), ("2024-01-02", None),
     ("12:30", None), ("1.2.3", None)],
)  # fmt: skip
def test_numbers(cell: str, expected: float | None) -> None:
    assert number(cell) == expected


@given(st.text(max_size=30))
def test_any_cell_is_a_number_or_not(cell: str) -> None:
    number(cell)
    number(cell, True)


def test_nan_and_inf_are_data(tmp_path: Path) -> None:
    run = read(write(tmp_path, "step,loss\n1,0.5\n2,inf\n3,nan\n4,NaN\n"))
    loss = run.series["loss/train"].values
    assert loss[0] == 0.5
    assert np.isinf(loss[1])
    assert np.isnan(loss[2:]).all()


def test_nan_may_mean_not_measured_here(tmp_path: Path) -> None:
    rows = [f"{i},{1 / (i + 1)},{0.5 if i % 10 == 9 else 'NaN'}" for i in range(40)]
    run = read(write(tmp_path, "\n".join(["step,train_loss,val_loss", *rows])))
    assert len(run.series["loss/val"]) == 4
    assert len(run.series["loss/train"]) == 40


def test_a_run_that_became_nan_keeps_its_nan(tmp_path: Path) -> None:
    rows = [f"{i},{1.0 if i < 5 else 'nan'}" for i in range(40)]
    run = read(write(tmp_path, "\n".join(["step,loss", *rows])))
    assert len(run.series["loss/train"]) == 40


def test_a_sparse_column_that_became_nan_keeps_its_nan(tmp_path: Path) -> None:
    rows = [f"{i},{1.0 if i < 100 and i % 10 == 9 else 'nan'}" for i in range(200)]
    loss = read(write(tmp_path, "\n".join(["step,val_loss", *rows]))).series["loss/val"]
    assert np.isfinite(loss.values[:10]).all()
    assert np.isnan(loss.values[10:]).all()
    assert len(loss) > 50


def test_a_summary_row_is_no_step(tmp_path: Path) -> None:
    run = read(write(tmp_path, "epoch,loss\n1,0.5\n2,0.4\nmean,0.45\nbest,0.4\n"))
    assert values(run, "loss/train") == [0.5, 0.4]
    assert "2 rows" in run.artifacts[0].warnings[0]
    assert "line 4" in run.artifacts[0].warnings[0]


def test_a_step_out_of_a_total(tmp_path: Path) -> None:
    run = read(write(tmp_path, "Epoch,Loss\n1/3,0.5\n2/3,0.4\n3/3,0.3\n"))
    assert run.series["loss/train"].steps.tolist() == [1, 2, 3]


def test_comments_byte_order_mark_and_blank_lines(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf# written by me\r\n\r\nstep,loss\r\n1,0.5\r\n# note\r\n2,0.4\r\n"
    run = read(write(tmp_path, text))
    assert values(run, "loss/train") == [0.5, 0.4]
    assert run.series["loss/train"].where(1) == "line 6"


def test_utf16_from_a_windows_shell(tmp_path: Path) -> None:
    run = read(write(tmp_path, "step,loss\r\n1,0.5\r\n2,0.4\r\n".encode("utf-16")))
    assert values(run, "loss/train") == [0.5, 0.4]


def test_mixed_encodings(tmp_path: Path) -> None:
    text = "step,loss,größe\n1,0.5,2\n".encode() + "2,0.4,3,ü\n".encode("latin-1") + b"3,0.3,4\n"
    run = read(write(tmp_path, text))
    assert values(run, "loss/train") == [0.5, 0.4, 0.3]


def test_header_behind_a_hash_as_numpy_writes_it(tmp_path: Path) -> None:
    buffer = io.StringIO()
    np.savetxt(buffer, [[1, 0.5], [2, 0.4], [3, 0.3]], header="epoch,val_loss", delimiter=",")
    run = read(write(tmp_path, buffer.getvalue()))
    assert values(run, "loss/val") == [0.5, 0.4, 0.3]


def test_ragged_rows_cost_only_themselves(tmp_path: Path) -> None:
    run = read(
        write(tmp_path, "step,loss,acc\n1,0.5,0.1\n2,0.4\nnoise\n3,0.3,0.3,9,9\n4,0.2,0.4\n")
    )
    assert values(run, "loss/train") == [0.5, 0.4, 0.3, 0.2]
    assert values(run, "accuracy/train") == [0.1, 0.3, 0.4]
    assert "3 rows" in run.artifacts[0].warnings[0]


def test_a_file_that_is_still_being_written(tmp_path: Path) -> None:
    run = read(write(tmp_path, "step,loss,acc\n1,0.5,0.1\n2,0.4,0.2\n3,0."))
    assert len(run.series["accuracy/train"]) == 2
    assert "cut off" in run.artifacts[0].warnings[0]


def test_duplicated_headers_lose_nothing(tmp_path: Path) -> None:
    run = read(write(tmp_path, "step,loss,loss\n1,0.5,5\n2,0.4,4\n"))
    assert set(run.series) == {"loss/train", "loss/train@2"}


def test_a_header_in_the_middle_is_a_second_start(tmp_path: Path) -> None:
    run = read(write(tmp_path, "step,loss\n1,0.5\n2,0.4\nstep,loss\n1,0.6\n2,0.3\n"))
    assert values(run, "loss/train") == [0.5, 0.4, 0.6, 0.3]
    assert run.get("loss/train").values.tolist() == [0.6, 0.3]  # type: ignore[union-attr]


def test_steps_within_an_epoch_count_on_for_every_metric(tmp_path: Path) -> None:
    rows = [f"{e},{b},{1 / (1 + e + b)}," for e in range(3) for b in range(0, 100, 10)]
    for e in (2, 1, 0):
        rows.insert((e + 1) * 10, f"{e},90,,{1 / (1 + e)}")
    run = read(write(tmp_path, "\n".join(["epoch,batch,loss,val_loss", *rows])))
    assert run.series["loss/train"].steps.tolist() == list(range(0, 300, 10))
    assert run.series["loss/val"].steps.tolist() == [90, 190, 290]


def test_many_rows_per_epoch_without_a_step(tmp_path: Path) -> None:
    rows = [f"{e},{1 / (1 + e + b)}" for e in range(3) for b in range(10)]
    loss = read(write(tmp_path, "\n".join(["epoch,loss", *rows]))).series["loss/train"]
    assert loss.axis == "point"
    assert loss.epochs[[0, 15, 29]].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("0.9\n0.8\n0.7\n", "train_loss.txt", "loss/train"),
        ("0 0.9\n100 0.85\n200 0.7\n", "curve.dat", "loss/train"),
        ("0,0.9\n1,0.85\n2,0.7\n", "val_acc.csv", "accuracy/val"),
        ("0.91,17\n0.85,12\n0.7,-4\n", "data.csv", "other/column_1"),
    ],
)
def test_without_a_header(tmp_path: Path, text: str, name: str, expected: str) -> None:
    run = read(write(tmp_path, text, name))
    assert expected in run.series
    assert "no header" in run.artifacts[0].warnings[-1]


def test_a_markdown_table(tmp_path: Path) -> None:
    run = read(write(tmp_path, "| epoch | loss |\n|---|---|\n| 1 | 0.5 |\n| 2 | 0.4 |\n", "t.md"))
    assert values(run, "loss/train") == [0.5, 0.4]


def test_the_name_of_a_file_may_tell_the_phase(tmp_path: Path) -> None:
    assert "loss/val" in read(write(tmp_path, "epoch,loss\n1,0.5\n2,0.4\n", "val.csv")).series
    losses = read(write(tmp_path, "epoch,train,val\n1,0.5,0.6\n2,0.4,0.5\n", "losses.csv"))
    assert set(losses.series) == {"loss/train", "loss/val"}


def test_a_header_alone_is_a_run_that_died_early(tmp_path: Path) -> None:
    path = write(tmp_path, "epoch,step,train_loss\n")
    assert sniffed(path) > 0.5
    run = read(path)
    assert not run.series
    assert "no rows" in run.artifacts[0].warnings[0]


def dataset(rows: int = 2000) -> str:
    rng = np.random.default_rng(0)
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["age", "income", "height", "target"])
    writer.writerows(rng.normal(size=(rows, 4)).round(4).tolist())
    return buffer.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        dataset(),
        "id,name,cost,price\n1,chair,20,30\n2,table,40,60\n",
        "0 0.5 0.5 0.2 0.2\n1 0.1 0.2 0.3 0.4\n",
        "model,accuracy,f1\nresnet,0.9,0.8\nvgg,0.8,0.7\nvit,0.95,0.9\n",
        "The quick brown fox, which jumped,\nwas, as we know, brown, and, quick.\n",
        "Epoch 1 loss 0.5 acc 0.1\nEpoch 2 loss 0.4 acc 0.2\n",
        '{"epoch": 1, "loss": 0.5}\n{"epoch": 2, "loss": 0.4}\n',
        "import torch\n\nprint(1, 2)\n",
        "Namespace(lr=0.1, batch_size=32)\n",
        "lr: 0.1\nbatch_size: 32\n",
        "[2024-01-01 10:00:00,123] INFO start\n[2024-01-01 10:00:01,456] INFO loss 0.5\n",
    ],
)
def test_what_is_no_table_of_metrics_sniffs_low(tmp_path: Path, text: str) -> None:
    assert sniffed(write(tmp_path, text)) < 0.3


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\x00\x01\x02" * 100, b"just words\nand words\n"])
def test_what_holds_nothing_is_unreadable(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, data)
    assert sniffed(path) < 0.3
    with pytest.raises(UnreadableArtifact):
        read(path)


def test_nul_bytes_in_the_middle(tmp_path: Path) -> None:
    run = read(write(tmp_path, b"step,loss\n1,0.5\n\x00\x00\x002,0.4\n3,0.3\n"))
    assert values(run, "loss/train") == [0.5, 0.4, 0.3]


def test_a_field_of_ten_megabytes(tmp_path: Path) -> None:
    text = b'step,loss,note\n1,0.5,"' + b"x" * (10 << 20) + b'"\n2,0.4,ok\n3,0.3,ok\n'
    run = read(write(tmp_path, text))
    assert values(run, "loss/train") == [0.4, 0.3]
    assert run.series["loss/train"].where(0) == "line 3"
    assert "longer than" in run.artifacts[0].warnings[-1]


def test_an_open_quote_does_not_eat_the_file(tmp_path: Path) -> None:
    rows = "".join(f'{i},{1 / i},"fine"\n' for i in range(2, 50))
    run = read(write(tmp_path, f'step,loss,note\n1,1.0,"open\n{rows}'))
    assert len(run.series["loss/train"]) == 49


def test_a_million_rows(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    with path.open("w") as file:
        file.write("step,loss,val_loss\n")
        file.writelines(f"{i},{0.5 + i % 97},{'' if i % 1000 else i}\n" for i in range(1_000_000))
    run = read(path)
    assert len(run.series["loss/train"]) == 1_000_000
    assert len(run.series["loss/val"]) == 1000


def test_of_a_huge_file_the_beginning_and_the_end_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traindx.readers.text.MAX_BYTES", 1 << 20)
    monkeypatch.setattr("traindx.readers.text.LineBlocks.__init__.__defaults__", (1 << 20,))
    lines = [f"{i},{1 / (i + 1):.6f}" for i in range(300_000)]
    run = read(write(tmp_path, "\n".join(["step,loss", *lines])))
    loss = run.series["loss/train"]
    assert loss.steps[0] == 0
    assert loss.steps[-1] == 299_999
    assert loss.where(-1) == "line 300001"
    assert len(loss) < 150_000
    assert "left out" in run.artifacts[0].warnings[0]


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), data)
        assert 0.0 <= sniffed(path) <= 1.0
        try:
            read(path)
        except UnreadableArtifact as error:
            assert str(path) in str(error)


@given(st.lists(st.lists(st.text("0123456789.,;-ne \t\"'%#|", max_size=8), max_size=4), max_size=8))
def test_any_rows_are_read_or_refused(rows: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = "step,loss\n1,0.5\n" + "\n".join(",".join(row) for row in rows)
        with contextlib.suppress(UnreadableArtifact):
            run = read(write(Path(folder), text))
            assert all(len(s.values) == len(s.steps) == len(s.places) for s in run.series.values())


def test_names_of_two_words_under_wide_blanks(tmp_path: Path) -> None:
    text = "Step    Training Loss    Validation Loss    Wer\n" + "".join(
        f"{500 * i}    {4 - i}.451200    {3 - i}.201234    0.8{i}\n" for i in range(1, 4)
    )
    run = read(write(tmp_path, text, "table.txt"))
    assert values(run, "loss/train") == [3.4512, 2.4512, 1.4512]
    assert values(run, "loss/val") == [2.201234, 1.201234, 0.201234]
    assert values(run, "wer/val") == [0.81, 0.82, 0.83]


def test_a_notebook_table_pasted_with_single_blanks(tmp_path: Path) -> None:
    text = "[1250/1250 10:22, Epoch 5/5]\nEpoch Training Loss Validation Loss Accuracy\n"
    text += "1 No log 0.69 0.50\n2 0.64 0.51 0.78\n3 0.41 0.49 0.80\n"
    run = read(write(tmp_path, text, "table.txt"))
    assert values(run, "loss/train") == [0.64, 0.41]
    assert values(run, "loss/val") == [0.69, 0.51, 0.49]
    assert values(run, "accuracy/val") == [0.5, 0.78, 0.8]


def test_a_score_with_a_twin_of_validation_is_of_training(tmp_path: Path) -> None:
    text = "epoch,train_loss,val_loss,accuracy,val_accuracy\n0,2.3,2.2,0.1,0.2\n1,1.9,1.8,0.4,0.5\n"
    run = read(write(tmp_path, text))
    assert values(run, "accuracy/train") == [0.1, 0.4]
    assert values(run, "accuracy/val") == [0.2, 0.5]


def test_a_table_on_its_side(tmp_path: Path) -> None:
    run = read(write(tmp_path, ",0,1,2\nloss,0.9,0.5,0.4\nval_loss,1.0,0.7,0.6\n"))
    assert values(run, "loss/train") == [0.9, 0.5, 0.4]
    assert run.series["loss/val"].steps.tolist() == [0, 1, 2]


def test_a_monitor_of_episodes(tmp_path: Path) -> None:
    head = '#{"t_start": 1.5, "env_id": "CartPole-v1"}\nr,l,t\n'
    run = read(write(tmp_path, head + "21.0,21,0.1\n34.0,34,0.3\n55.0,55,0.6\n", "monitor.csv"))
    assert values(run, "reward/train") == [21.0, 34.0, 55.0]
    assert "time/time" in run.series


def test_a_column_called_value_beside_others_keeps_its_name(tmp_path: Path) -> None:
    run = read(write(tmp_path, "frame,episode_reward,value\n640,0.5,0.1\n1280,0.7,0.2\n"))
    assert run.series["reward/train"].steps.tolist() == [640, 1280]
    assert "other/value" in run.series


def test_a_row_per_trial_has_settings_and_no_curve_of_them(tmp_path: Path) -> None:
    run = read(write(tmp_path, "lr,batch_size,val_acc\n0.1,16,0.5\n0.01,32,0.6\n0.1,64,0.7\n"))
    assert set(run.series) == {"accuracy/val"}
