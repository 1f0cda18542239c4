"""Kinds of lines of widely used trainers, imitated: where step, metric and phase stand in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx.model.run import Run, Series
from traindx.readers.formats.console.reader import read
from traindx.readers.opening import open_paths


def _read(tmp_path: Path, text: str) -> Run:
    path = tmp_path / "train.log"
    path.write_text(text, encoding="utf-8")
    return read(path)


def _points(series: Series) -> list[tuple[float, float]]:
    return list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


def test_a_step_between_the_name_and_the_value(tmp_path: Path) -> None:
    text = "".join(
        f"Train loss {i} {9.5 - i / 2:.6f} Grad Norm 1.250000 3.9s/it\n" for i in range(5)
    )
    text += "Validation loss 4:  7.125000\n" + "Validation loss 900:  0.412500\n"
    run = _read(tmp_path, text)
    assert _points(run.series["loss/train"])[:2] == [(0.0, 9.5), (1.0, 9.0)]
    assert _points(run.series["loss/val"]) == [(4.0, 7.125), (900.0, 0.4125)]


def test_numbered_losses_keep_their_numbers(tmp_path: Path) -> None:
    run = _read(tmp_path, "step 1 loss 1: 0.5 loss 2: 0.25\nstep 2 loss 1: 0.4 loss 2: 0.2\n")
    assert {"loss/train/1", "loss/train/2"} <= set(run.series)


def test_a_verb_binds_a_value(tmp_path: Path) -> None:
    run = _read(tmp_path, "Epoch: [0] [10/90] loss: 2.5\nLoss is nan, stopping training\n")
    assert any(np.isnan(s.last) for n, s in run.series.items() if n.startswith("loss/train"))
    text = "".join(
        f"Epoch {i}, global step {70 * i}: val_loss reached 0.{9 - i}1 (best 0.{9 - i}1), saving "
        f"model to /runs/a-epoch={i}.ckpt as top 3\n"
        for i in range(3)
    )
    run = _read(tmp_path, text)
    assert _points(run.series["loss/val"]) == [(0.0, 0.91), (70.0, 0.81), (140.0, 0.71)]
    assert not any(n.startswith("accuracy") for n in run.series)


def test_nan_that_is_filled_up(tmp_path: Path) -> None:
    run = _read(tmp_path, "epoch: [1/9], global_step: 10, lr: 0.001, loss: nanxxx, eta: 0:10:00\n")
    assert np.isnan(run.series["loss/train"].last)


def test_values_before_their_names(tmp_path: Path) -> None:
    text = "".join(
        f" {i}: {9 - i}.500000, {9 - i}.750000 avg, 0.001000 rate, 4.5 seconds, {64 * i} images\n"
        for i in range(1, 4)
    )
    run = _read(tmp_path, text)
    assert _points(run.series["loss/train"]) == [(1.0, 8.75), (2.0, 7.75), (3.0, 6.75)]
    assert run.series["lr"].last == pytest.approx(0.001)


def test_a_rank_in_brackets_is_no_step(tmp_path: Path) -> None:
    text = "".join(
        f"2022-10-03 21:05:24,891 INFO [a.py:9] (1/4) Epoch 1, batch {i}, loss[loss=0.{90 - i}]\n"
        for i in (0, 50)
    )
    assert _read(tmp_path, text).series["loss/train"].steps.tolist() == [0.0, 50.0]


def test_the_number_of_an_epoch_before_its_name(tmp_path: Path) -> None:
    text = "".join(
        f"{i}epoch results: [train] loss={9 - i}.5, [valid] loss={9 - i}.75\n" for i in (3, 4, 5)
    )
    run = _read(tmp_path, text)
    assert _points(run.series["loss/train"]) == [(3.0, 6.5), (4.0, 5.5), (5.0, 4.5)]
    assert _points(run.series["loss/val"])[0] == (3.0, 6.75)


def test_the_summary_of_a_model_is_no_metric(tmp_path: Path) -> None:
    rows = (
        "0 | net | Linear | 200 K\n1 | criterion | CrossEntropyLoss | 0\n2 | acc | Accuracy | 0\n"
    )
    assert not _read(tmp_path, rows).series


def test_lines_with_other_keys_stay_one_series(tmp_path: Path) -> None:
    lines = [
        "{'loss': 2.0, 'grad_norm': 1.0, 'epoch': 0.01}",
        "{'loss': 1.9, 'grad_norm': 1.0, 'epoch': 0.01}",
        "{'loss': 1.8, 'epoch': 0.01}",
        "{'loss': 1.7, 'grad_norm': 1.0, 'epoch': 0.02}",
    ]
    run = _read(tmp_path, "\n".join(lines))
    assert run.series["loss/train"].values.tolist() == [2.0, 1.9, 1.8, 1.7]


def test_whose_metric_it_is(tmp_path: Path) -> None:
    text = "".join(
        f"[{100 * i}]\ttraining's auc: 0.9{i}\tvalid_0's auc: 0.8{i}\n" for i in range(1, 5)
    )
    run = _read(tmp_path, text + "[300]\ttraining's auc: 0.93\tvalid_0's auc: 0.83\n")
    assert run.series["auc/train"].steps.tolist()[:4] == [100.0, 200.0, 300.0, 400.0]
    assert "auc/val/0" in run.series


@pytest.mark.parametrize(
    "line",
    [
        "エポック {0}/3 損失: 0.9{0} 検証損失: 0.8{0}",
        "Эпоха {0}/3, Потери на обучении: 0.9{0}, Потери на валидации: 0.8{0}",
        "에폭 {0}/3 손실: 0.9{0} 검증 손실: 0.8{0}",
    ],
)
def test_phases_in_other_languages(tmp_path: Path, line: str) -> None:
    run = _read(tmp_path, "\n".join(line.format(i) for i in (1, 2, 3)))
    assert run.series["loss/train"].values.tolist() == [0.91, 0.92, 0.93]
    assert run.series["loss/val"].values.tolist() == [0.81, 0.82, 0.83]


def test_the_time_a_meter_waits_for_data(tmp_path: Path) -> None:
    meters = "".join(
        f"Epoch: [0][{i:3d}/90]\tTime  0.250 ( 0.270)\tData  0.200 ( 0.210)\tLoss 2.5000e+00 "
        "(2.6000e+00)\n"
        for i in range(3)
    )
    run = _read(tmp_path, meters)
    assert run.series["time/data_time"].values.tolist() == [0.2] * 3
    assert run.series["time/time"].values.tolist() == [0.25] * 3
    run = _read(tmp_path, "".join(f"step {i} loss on data 0.5{i} acc 0.25\n" for i in range(3)))
    assert "time/data_time" not in run.series


def test_an_index_is_no_metric(tmp_path: Path) -> None:
    text = "".join(
        f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {2.0**i}\n"
        for i in range(9, 3, -1)
    )
    assert not any(n.startswith("loss/") for n in _read(tmp_path, text).series)


def test_all_iterations_so_far_are_no_accuracy(tmp_path: Path) -> None:
    text = "".join(
        f"INFO  Train:  1/3 ( 33%) [{i:4d}/323 ( {i // 4}%)]  Loss: {9 - i / 100:.2f} (9.0)  "
        f"LR: 1.000e-04  Acc_iter {i + 1}          Data time: 0.01(0.02)\n"
        for i in (0, 49, 99)
    )
    run = _read(tmp_path, text)
    assert run.series["loss/train"].steps.tolist() == [1.0, 50.0, 100.0]
    assert not any(n.startswith("accuracy") for n in run.series)


def test_a_score_of_each_class_is_no_score(tmp_path: Path) -> None:
    text = "".join(
        f"2024-01-01 09:0{i}:00.1: Epoch {i}\n2024-01-01 09:0{i}:01.1: Current learning rate: 0.01\n"
        f"2024-01-01 09:0{i}:02.1: train_loss 0.{9 - i}\n"
        f"2024-01-01 09:0{i}:02.2: Pseudo dice [0.0, 0.8{i}, nan]\n"
        for i in range(3)
    )
    run = _read(tmp_path, text)
    assert {"lr", "loss/train"} <= set(run.series)
    assert not any(n.startswith("dice") for n in run.series)


def test_a_step_in_brackets_after_the_file(tmp_path: Path) -> None:
    text = "".join(
        f"I1002 21:38:13.425730 139917 logging_writer.py:35] [{i}] train_accuracy=0.5, "
        f"train_loss=3.{i}\n"
        for i in (400, 500)
    )
    assert _read(tmp_path, text).series["loss/train"].steps.tolist() == [400.0, 500.0]


def test_a_long_block_under_a_heading(tmp_path: Path) -> None:
    names = ("disc", "gen", "kl", "feat", "mel", "duration", "total", "aux", "style")
    block = "".join(f"     | > avg_loss_{name}: 2.5 (+0)\n" for name in names)
    run = _read(tmp_path, f" > EPOCH: 0/10\n\n > EVALUATION\n\n  --> EVAL PERFORMANCE\n{block}")
    assert "loss/val/style" in run.series
    assert not any(n.startswith("loss/train") for n in run.series)


def test_terms_of_a_detector_by_their_bare_names(tmp_path: Path) -> None:
    header = "     Epoch   gpu_mem       box       obj       cls    labels  img_size\n"
    report = (
        "               Class     Images     Labels          P          R     mAP@.5 mAP@.5:.95"
    )
    text = "".join(
        f"{header}       {i}/9     4.1G    0.{9 - i}1   0.04   0.002       36       640: 100%{bar}\n"
        f"{report}: 100%{bar}\n                 all        25       190      0.8      0.9"
        f"      0.7      0.{i}\n\n"
        for i, bar in enumerate(
            (" 42/42 [01:09<00:00,  1.6s/it]", "|####| 42/42 [01:09<00:00,  1.6s/it]") * 2
        )
    )
    run = _read(tmp_path, text)
    assert run.series["loss/train/box"].values.tolist() == [0.91, 0.81, 0.71, 0.61]
    assert run.series["map/val"].values.tolist() == [0.0, 0.1, 0.2, 0.3]
    assert run.series["map/val/50"].values.tolist() == [0.7] * 4


def test_scores_beside_both_losses_are_of_validation(tmp_path: Path) -> None:
    text = "some words before it\n# epoch     train_loss  valid_loss  accuracy  time\n" + "".join(
        f"# {i}         0.{9 - i}00    0.{8 - i}00    0.{5 + i}00  00:2{i}\n" for i in range(3)
    )
    run = _read(tmp_path, text)
    assert run.series["accuracy/val"].values.tolist() == [0.5, 0.6, 0.7]
    assert run.series["loss/val"].values.tolist() == [0.8, 0.7, 0.6]


def test_a_training_loss_that_is_not_logged_yet(tmp_path: Path) -> None:
    text = (
        "- Accuracy: 0.8\n\n| Training Loss | Epoch | Step | Validation Loss | Accuracy |\n"
        + "".join(
            f"| {loss} | {i}.0   | {60 * i}   | 0.5{i} | 0.7{i}   |\n"
            for i, loss in enumerate(("No log       ", "No log       ", "0.4123       "), start=1)
        )
    )
    run = _read(tmp_path, text)
    assert run.series["loss/val"].values.tolist() == [0.51, 0.52, 0.53]
    assert run.series["accuracy/val"].values.tolist() == [0.71, 0.72, 0.73]
    assert run.series["loss/train"].values.tolist()[-1:] == [0.4123]


def test_a_sentence_about_one_step_is_no_series(tmp_path: Path) -> None:
    line = "(trainer:581) WARNING: The grad norm is nan. Skipping updating the model.\n"
    run = _read(tmp_path, "1epoch:train:1-100batch: loss=65.1, acc=0.06\n" + 9 * line)
    assert "grad_norm" not in run.series


def test_losses_of_two_generators(tmp_path: Path) -> None:
    text = "".join(
        f"(epoch: 1, iters: {i}00, time: 0.3, data: 0.2) D_A: 0.4 G_A: 0.{i} cycle_A: 2.1\n"
        for i in range(1, 4)
    )
    run = _read(tmp_path, text)
    assert run.series["loss/train/g_a"].values.tolist() == [0.1, 0.2, 0.3]
    assert {"loss/train/d_a", "loss/train/cycle_a"} <= set(run.series)


def test_the_loss_after_a_test_is_of_training(tmp_path: Path) -> None:
    text = "".join(
        f"I1010 17:0{i}:18.1 24907 solver.cpp:247] Iteration {i}000, Testing net (#0)\n"
        f"I1010 17:0{i}:51.2 24907 solver.cpp:298]     Test net output #0: accuracy = 0.{i}\n"
        f"I1010 17:0{i}:51.5 24907 solver.cpp:191] Iteration {i}000, loss = {9 - i}.5\n"
        for i in range(1, 4)
    )
    run = _read(tmp_path, text)
    assert run.series["loss/train"].values.tolist() == [8.5, 7.5, 6.5]
    assert run.series["accuracy/test"].values.tolist() == [0.1, 0.2, 0.3]


def test_a_bare_norm_beside_a_loss_is_that_of_the_gradients(tmp_path: Path) -> None:
    text = "norm: 2\n" + "".join(
        f"step {i:4d}/900 | loss {9 - i}.5 (+nanz)| norm 1.{i} (+nanz)| lr 1e-04 | 42.6% bf16 MFU\n"
        for i in range(1, 4)
    )
    run = _read(tmp_path, text)
    assert run.series["grad_norm"].values.tolist() == [1.1, 1.2, 1.3]
    assert "grad_norm@2" not in run.series


def test_the_mean_of_an_evaluation_counts_and_the_batch_of_training(tmp_path: Path) -> None:
    text = "".join(
        f"Epoch: [{i}][100/200]\tTime 0.31 (0.37)\tLoss 1.{i}167 (1.2820)\n"
        f"Test: [50/100]\tTime 0.1 (0.2)\tLoss 2.1167 (2.2{i})\tAcc@1 40.0 (45.{i})\n"
        for i in range(1, 4)
    )
    (tmp_path / "run.log").write_text(text)
    run = open_paths([str(tmp_path / "run.log")])
    assert run.series["loss/train"].values.tolist() == [1.1167, 1.2167, 1.3167]
    assert run.series["loss/val"].values.tolist() == [2.21, 2.22, 2.23]
    assert run.series["time/time"].values.tolist() == [0.31] * 3
    assert run.series["time/val/time"].values.tolist() == [0.2] * 3


def test_a_log_after_a_hole(tmp_path: Path) -> None:
    lines = "".join(f"step {i} | loss {9 - i}.5 | ppl 3{i}.1\n" for i in range(1, 5))
    path = tmp_path / "train.log"
    path.write_bytes(b"\0" * 200_000 + lines.encode())
    run = open_paths([str(path)])
    assert run.series["loss/train"].values.tolist() == [8.5, 7.5, 6.5, 5.5]


def test_scores_after_an_evaluation_are_of_it(tmp_path: Path) -> None:
    text = "".join(
        f"Epoch {i}/3\ntrain Loss: 0.{i} Acc: 0.8{i}\nval Loss: 0.5{i} Acc: 0.6{i}\n"
        f"Confusion Matrix:\n[[28  6]\n [ 9 32]]\nF1 Score: 0.7{i}\nAUC: 0.5{i}\n"
        for i in range(1, 4)
    )
    run = _read(tmp_path, text)
    assert run.series["f1/val"].values.tolist() == [0.71, 0.72, 0.73]
    assert run.series["auc/val"].values.tolist() == [0.51, 0.52, 0.53]
    assert "f1/train" not in run.series


def test_a_small_percentage_is_no_share(tmp_path: Path) -> None:
    run = _read(tmp_path, "".join(f"Epoch {i}/3 - val_acc: 1.0%\n" for i in range(1, 4)))
    assert run.series["accuracy/val"].values.tolist() == [0.01] * 3


def test_names_that_stand_for_a_loss_a_gradient_and_a_reward(tmp_path: Path) -> None:
    text = "".join(f"iter {i} avg(utility)={i}.5 Grad: 0.{i} total: 2.{i}\n" for i in range(1, 4))
    run = _read(tmp_path, text)
    assert set(run.series) == {"reward/train", "grad_norm", "loss/train"}


@pytest.mark.parametrize(
    "line",
    [
        "{'lr': 0.1, 'batch_size': 32, 'dropout': 0.1}",
        "  Reward weights: accuracy=0.7, format=0.3",
        "      learning_rate=5e-05,",
        "    aten::mse_loss         0.27%      23.000us         5.27%     823.000us",
        "   clip_grad_norm_         1.27%     123.000us         2.27%      32.000us",
        "D: 0.05, 0.04, 0.04, 0.07 | G: 0.2, 0.1, 0.1, 0.1",
    ],
)
def test_what_is_no_metric(tmp_path: Path, line: str) -> None:
    text = f"{line}\n" * 3 + "".join(f"Epoch {i} loss: 0.{i}\n" for i in range(1, 4))
    assert set(_read(tmp_path, text).series) == {"loss/train"}


def test_the_total_stands_for_its_terms(tmp_path: Path) -> None:
    text = "".join(
        f"[batch {i}/9, epoch 1/2]: loss_smooth:0.1{i} loss_total:3.{i} binary_loss:0.7{i}\n"
        for i in range(1, 4)
    )
    run = _read(tmp_path, text)
    assert run.series["loss/train"].values.tolist() == [3.1, 3.2, 3.3]


def test_a_tag_between_the_name_and_the_value(tmp_path: Path) -> None:
    text = "".join(f"Epoch {i} Prec@1 05 88.{i} (77.5)\n" for i in range(1, 4))
    run = _read(tmp_path, text)
    assert all(s.values.min() > 10 for n, s in run.series.items() if n.startswith("accuracy"))


def test_the_set_of_a_score_and_its_count(tmp_path: Path) -> None:
    text = "".join(
        f"Step: {i}, accuracy: 90.{i}%\nAccuracy on Test-Set: 7{i}.5% (7{i}50 / 10000)\n"
        for i in range(1, 4)
    )
    run = _read(tmp_path, text)
    assert run.series["accuracy/train"].values.tolist() == [90.1, 90.2, 90.3]
    name = next(n for n in run.series if n in {"accuracy/test", "accuracy/val"})
    assert run.series[name].values.tolist() == [71.5, 72.5, 73.5]
    assert run.series[name].steps.max() <= 3
