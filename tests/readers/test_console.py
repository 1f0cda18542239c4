"""The console-log reader: each format as people print it, and what must not be taken for a metric."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traindx.errors import UnreadableArtifact
from traindx.model.run import Run
from traindx.readers import deadline
from traindx.readers.formats.console.blocks import Blocks
from traindx.readers.formats.console.log_scan import LogScan
from traindx.readers.formats.console.parts import scan_log
from traindx.readers.formats.console.plan import LinePlan
from traindx.readers.formats.console.reader import read, sniff
from traindx.readers.formats.console.tracks import SeriesKey, Sheet


def read_text(tmp_path: Path, text: str | bytes) -> Run:
    path = tmp_path / "train.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path)


def values(run: Run, name: str) -> list[float]:
    return [round(v, 9) for v in run.series[name].values.tolist()]


def steps(run: Run, name: str) -> list[float]:
    return [round(s, 9) for s in run.series[name].steps.tolist()]


# name of the format: (log, {series: (axis, steps, values)})
FORMATS: dict[str, tuple[str, dict[str, tuple[str, list[float], list[float]]]]] = {
    "epoch line with two separators": (
        "epoch 3/10 loss: 0.42 val_loss=0.51\nepoch 4/10 loss: 0.40 val_loss=0.50\n",
        {
            "loss/train": ("epoch", [3, 4], [0.42, 0.40]),
            "loss/val": ("epoch", [3, 4], [0.51, 0.50]),
        },
    ),
    "epoch, comma, loss": (
        "Epoch 3, Loss: 2.3026\nEpoch 4, Loss: 2.1\n",
        {"loss/train": ("epoch", [3, 4], [2.3026, 2.1])},
    ),
    "bracketed epoch and step": (
        "".join(
            f"Epoch [{e}/2], Step [{s}/300], Loss: {1 / (e * s):.4f}\n"
            for e in (1, 2)
            for s in (100, 200, 300)
        ),
        {
            "loss/train": (
                "step",
                [100, 200, 300, 400, 500, 600],
                [0.01, 0.005, 0.0033, 0.005, 0.0025, 0.0017],
            )
        },
    ),
    "pair of counters": (
        "[1,  2000] loss: 2.2\n[1,  4000] loss: 1.9\n[2,  2000] loss: 1.5\n[2,  4000] loss: 1.4\n",
        {"loss/train": ("step", [2000, 4000, 6000, 8000], [2.2, 1.9, 1.5, 1.4])},
    ),
    "samples of an epoch": (
        "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.302\nTrain Epoch: 1 [640/60000 (1%)]\tLoss: 2.27\n"
        "\nTest set: Average loss: 0.05, Accuracy: 9900/10000 (99%)\n\n"
        "Train Epoch: 2 [0/60000 (0%)]\tLoss: 0.20\nTrain Epoch: 2 [640/60000 (1%)]\tLoss: 0.10\n"
        "\nTest set: Average loss: 0.04, Accuracy: 9910/10000 (99%)\n\n",
        {
            "loss/train": ("step", [0, 640, 60000, 60640], [2.302, 2.27, 0.2, 0.1]),
            "loss/test": ("epoch", [1, 2], [0.05, 0.04]),
            "accuracy/test": ("epoch", [1, 2], [0.99, 0.991]),
        },
    ),
    "quickstart tutorial": (
        "Epoch 1\n-------------------------------\nloss: 2.303494  [   64/60000]\n"
        "loss: 2.294637  [ 6464/60000]\nTest Error: \n Accuracy: 44.7%, Avg loss: 2.157 \n\n"
        "Epoch 2\n-------------------------------\nloss: 2.103494  [   64/60000]\n"
        "loss: 2.094637  [ 6464/60000]\nTest Error: \n Accuracy: 54.7%, Avg loss: 1.957 \n\nDone!\n",
        {
            "loss/train": (
                "step",
                [64, 6464, 60064, 66464],
                [2.303494, 2.294637, 2.103494, 2.094637],
            ),
            "accuracy/test": ("epoch", [1, 2], [44.7, 54.7]),
            "loss/test": ("epoch", [1, 2], [2.157, 1.957]),
        },
    ),
    "tqdm": (
        "\rEpoch 1:   0%|          | 0/3 [00:00<?, ?it/s]"
        "\rEpoch 1:  33%|███▎      | 1/3 [00:00<00:01,  1.5it/s, loss=0.9, acc=0.1]"
        "\rEpoch 1:  33%|███▎      | 1/3 [00:00<00:01,  1.4it/s, loss=0.9, acc=0.1]"
        "\rEpoch 1:  67%|██████▋   | 2/3 [00:01<00:00,  1.5it/s, loss=0.8, acc=0.2]"
        "\rEpoch 1: 100%|██████████| 3/3 [00:02<00:00,  1.5it/s, loss=0.7, acc=0.3]\n"
        "\rEpoch 2:  33%|███▎      | 1/3 [00:00<00:01,  1.5it/s, loss=0.6, acc=0.4]"
        "\rEpoch 2: 100%|██████████| 3/3 [00:02<00:00,  1.5it/s, loss=0.5, acc=0.5]\n",
        {
            "loss/train": ("step", [1, 2, 3, 4, 6], [0.9, 0.8, 0.7, 0.6, 0.5]),
            "accuracy/train": ("step", [1, 2, 3, 4, 6], [0.1, 0.2, 0.3, 0.4, 0.5]),
        },
    ),
    "a bar that begins anew": (
        "Epoch 0: 100%|██████████| 4/4 [00:00<00:00, 24.4it/s, train_loss=0.9]\n"
        "Epoch 0:   0%|          | 0/4 [00:00<?, ?it/s, train_loss=0.9]\n"
        "Epoch 1:   0%|          | 0/4 [00:00<?, ?it/s, train_loss=0.9]\n"
        "Epoch 1: 100%|██████████| 4/4 [00:00<00:00, 24.4it/s, train_loss=0.7]\n"
        "Epoch 1:   0%|          | 0/4 [00:00<?, ?it/s, train_loss=0.7]\n"
        "Epoch 2:   0%|          | 0/4 [00:00<?, ?it/s, train_loss=0.7]\n"
        "Epoch 2: 100%|██████████| 4/4 [00:00<00:00, 24.4it/s, train_loss=0.8]\n",
        {"loss/train": ("step", [4, 8, 12], [0.9, 0.7, 0.8])},
    ),
    "keras 2": (
        "Epoch 1/2\n1875/1875 [==============================] - 5s 2ms/step - loss: 0.29"
        " - accuracy: 0.91 - val_loss: 0.15 - val_accuracy: 0.95\n"
        "Epoch 2/2\n1875/1875 [==============================] - 4s 2ms/step - loss: 0.14"
        " - accuracy: 0.95 - val_loss: 0.11 - val_accuracy: 0.96\n",
        {
            "loss/train": ("step", [1875, 3750], [0.29, 0.14]),
            "accuracy/val": ("step", [1875, 3750], [0.95, 0.96]),
        },
    ),
    "keras 3": (
        "Epoch 1/2\n\x1b[1m938/938\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m3s\x1b[0m"
        " 2ms/step - accuracy: 0.86 - loss: 0.48 - val_accuracy: 0.95 - val_loss: 0.16\n"
        "Epoch 2/2\n\x1b[1m938/938\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m2s\x1b[0m"
        " 2ms/step - accuracy: 0.95 - loss: 0.15 - val_accuracy: 0.96 - val_loss: 0.12\n",
        {
            "accuracy/train": ("step", [938, 1876], [0.86, 0.95]),
            "loss/val": ("step", [938, 1876], [0.16, 0.12]),
        },
    ),
    "python dict": (
        "{'loss': 1.2, 'grad_norm': 2.5, 'learning_rate': 5e-05, 'epoch': 0.1}\n"
        "{'eval_loss': 1.1, 'eval_runtime': 1.25, 'epoch': 0.1}\n"
        "{'loss': nan, 'grad_norm': nan, 'learning_rate': 4.5e-05, 'epoch': 0.2}\n",
        {
            "loss/train": ("epoch", [0.1, 0.2], [1.2, math.nan]),
            "lr": ("epoch", [0.1, 0.2], [5e-05, 4.5e-05]),
            "loss/val": ("epoch", [0.1], [1.1]),
        },
    ),
    "json objects inside a log": (
        'starting\n2024-05-01 10:00:00 | INFO | {"step": 10, "train": {"loss": 0.5}, "lr": 0.1}\n'
        '2024-05-01 10:00:09 | INFO | {"step": 20, "train": {"loss": 0.4}, "lr": 0.1}\n',
        {"loss/train": ("step", [10, 20], [0.5, 0.4]), "lr": ("step", [10, 20], [0.1, 0.1])},
    ),
    "nanogpt": (
        "step 0: train loss 4.28, val loss 4.27\niter 0: loss 4.2658, time 9821.51ms, mfu -100.00%\n"
        "iter 10: loss 3.2412, time 52.13ms, mfu 3.21%\n"
        "step 20: train loss 2.10, val loss 2.20\niter 20: loss 2.1501, time 452.1ms, mfu 3.10%\n",
        {
            "loss/val": ("step", [0, 20], [4.27, 2.2]),
            "loss/train": ("step", [0, 10, 20], [4.2658, 3.2412, 2.1501]),
            "loss/train@2": ("step", [0, 20], [4.28, 2.10]),
            "time/time": ("step", [0, 10, 20], [9821.51, 52.13, 452.1]),
        },
    ),
    "fairseq bars": (
        "| epoch 001 | loss 9.1 | nll_loss 8.9 | ppl 548.74 | num_updates 100 | lr 1.25e-05 | gnorm 2.5\n"
        "| epoch 002 | loss 8.1 | nll_loss 7.9 | ppl 248.74 | num_updates 200 | lr 2.5e-05 | gnorm 2.4\n",
        {
            "loss/train": ("step", [100, 200], [9.1, 8.1]),
            "perplexity/train": ("step", [100, 200], [548.74, 248.74]),
            "grad_norm": ("step", [100, 200], [2.5, 2.4]),
        },
    ),
    "fairseq json": (
        '2023-01-01 00:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.05, "loss": "9.1",'
        ' "ppl": "548.7", "num_updates": "100", "lr": "1e-05", "gnorm": "2.1", "clip": "0"}\n'
        '2023-01-01 00:00:10 | INFO | train_inner | {"epoch": 1, "update": 0.1, "loss": "8.7",'
        ' "ppl": "415.8", "num_updates": "200", "lr": "2e-05", "gnorm": "2.0", "clip": "0"}\n',
        {
            "loss/train": ("step", [100, 200], [9.1, 8.7]),
            "lr": ("step", [100, 200], [1e-05, 2e-05]),
        },
    ),
    "megatron": (
        " iteration    24590/  100000 | consumed samples:     12590080 | elapsed time per iteration (ms):"
        " 1234.5 | learning rate: 1.500E-04 | global batch size:   512 | lm loss: 6.101930E+00 |"
        " loss scale: 65536.0 | grad norm: 44.012 | number of skipped iterations:   0 |"
        " number of nan iterations:   0 |\n"
        " iteration    24600/  100000 | consumed samples:     12595200 | elapsed time per iteration (ms):"
        " 1240.1 | learning rate: 1.500E-04 | global batch size:   512 | lm loss: 6.001930E+00 |"
        " loss scale: 32768.0 | grad norm: 4.012 | number of skipped iterations:   1 |"
        " number of nan iterations:   0 |\n",
        {
            "loss/train": ("step", [24590, 24600], [6.10193, 6.00193]),
            "loss_scale": ("step", [24590, 24600], [65536, 32768]),
            "grad_norm": ("step", [24590, 24600], [44.012, 4.012]),
            "lr": ("step", [24590, 24600], [1.5e-4, 1.5e-4]),
        },
    ),
    "deepspeed": (
        "[2023-01-01 00:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0,"
        " lr=[6e-06, 6e-06], mom=[(0.9, 0.95), (0.9, 0.95)]\n"
        "[2023-01-01 00:00:09,456] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=0,"
        " lr=[5e-06, 5e-06], mom=[(0.9, 0.95), (0.9, 0.95)]\n",
        {"lr": ("step", [10, 20], [6e-06, 5e-06])},
    ),
    "logfmt": (
        "ts=2024-01-01T00:00:00Z level=info step=10 loss=0.1\n"
        "ts=2024-01-01T00:00:01Z level=info step=20 loss=0.05\n",
        {"loss/train": ("step", [10, 20], [0.1, 0.05])},
    ),
    "logger prefixes": (
        "INFO:root:step 1 loss: 0.5\n2024-01-01 10:00:00,123 - trainer - INFO - step 2 loss: 0.4\n"
        "[2024-01-01 10:00:00,123][module][INFO] - step 3 loss: 0.3\n"
        "I0101 10:00:00.123456 4242 train.py:77] step 4 loss: 0.2\n",
        {"loss/train": ("step", [1, 2, 3, 4], [0.5, 0.4, 0.3, 0.2])},
    ),
    "detectron": (
        "[01/02 10:00:00 d2.utils.events]: eta: 1:02:03  iter: 19  total_loss: 2.1  loss_cls: 1.0"
        "  time: 0.5432  data_time: 0.0123  lr: 0.0002  max_mem: 3000M\n"
        "[01/02 10:00:09 d2.utils.events]: eta: 1:01:03  iter: 39  total_loss: 1.9  loss_cls: 0.9"
        "  time: 0.5400  data_time: 0.0120  lr: 0.0004  max_mem: 3000M\n",
        {
            "loss/train": ("step", [19, 39], [2.1, 1.9]),
            "loss/train/cls": ("step", [19, 39], [1.0, 0.9]),
            "lr": ("step", [19, 39], [0.0002, 0.0004]),
            "memory/max": ("step", [19, 39], [3000, 3000]),
        },
    ),
    "mmdetection": (
        "2024-01-01 10:00:00,123 - mmdet - INFO - Epoch [1][50/100]\tlr: 9.890e-04, eta: 1 day, 2:03:04,"
        " time: 0.516, memory: 3871, loss_cls: 0.92, loss: 1.51\n"
        "2024-01-01 10:00:30,123 - mmdet - INFO - Epoch [1][100/100]\tlr: 1.990e-03, eta: 1 day, 1:03:04,"
        " time: 0.503, memory: 3871, loss_cls: 0.82, loss: 1.41\n"
        "2024-01-01 10:01:30,123 - mmdet - INFO - Epoch [2][50/100]\tlr: 1.990e-03, eta: 23:03:04,"
        " time: 0.503, memory: 3871, loss_cls: 0.72, loss: 1.31\n",
        {
            "loss/train": ("step", [50, 100, 150], [1.51, 1.41, 1.31]),
            "loss/train/cls": ("step", [50, 100, 150], [0.92, 0.82, 0.72]),
        },
    ),
    "mmengine": (
        "01/02 10:00:00 - mmengine - INFO - Epoch(train)  [1][ 50/100]  lr: 1.0e-03  loss: 1.5\n"
        "01/02 10:00:09 - mmengine - INFO - Epoch(train)  [1][100/100]  lr: 1.0e-03  loss: 1.4\n"
        "01/02 10:00:20 - mmengine - INFO - Epoch(val) [1][25/25]    coco/bbox_mAP: 0.1230\n"
        "01/02 10:00:30 - mmengine - INFO - Epoch(train)  [2][ 50/100]  lr: 1.0e-03  loss: 1.3\n"
        "01/02 10:00:40 - mmengine - INFO - Epoch(val) [2][25/25]    coco/bbox_mAP: 0.2230\n",
        {"loss/train": ("step", [50, 100, 150], [1.5, 1.4, 1.3])},
    ),
    "timm": (
        "Train: 0 [   0/1251 (  0%)]  Loss: 6.93 (6.93)  Time: 4.4s,  231.2/s  (4.4s,  231.2/s)"
        "  LR: 1.000e-06  Data: 1.2 (1.2)\n"
        "Train: 0 [  50/1251 (  4%)]  Loss: 6.90 (6.91)  Time: 0.4s,  600.2/s  (0.5s,  531.2/s)"
        "  LR: 1.000e-06  Data: 0.1 (0.2)\n"
        "Train: 1 [   0/1251 (  0%)]  Loss: 6.80 (6.81)  Time: 0.4s,  600.2/s  (0.5s,  531.2/s)"
        "  LR: 2.000e-06  Data: 0.1 (0.2)\n",
        {
            "loss/train": ("step", [0, 50, 1251], [6.93, 6.9, 6.8]),
            "lr": ("step", [0, 50, 1251], [1e-06, 1e-06, 2e-06]),
        },
    ),
    "imagenet example": (
        "Epoch: [0][   0/5005]\tTime  9.50 (  9.50)\tData  7.1 (  7.1)\tLoss 7.0e+00 (7.0e+00)\t"
        "Acc@1   0.00 (  0.00)\tAcc@5   0.39 (  0.39)\n"
        "Epoch: [0][  10/5005]\tTime  0.35 (  1.20)\tData  0.0 (  0.6)\tLoss 6.9e+00 (7.0e+00)\t"
        "Acc@1   0.39 (  0.14)\tAcc@5   1.17 (  0.60)\n"
        "Epoch: [1][   0/5005]\tTime  0.35 (  1.20)\tData  0.0 (  0.6)\tLoss 6.0e+00 (7.0e+00)\t"
        "Acc@1   2.39 (  0.14)\tAcc@5   5.17 (  0.60)\n",
        {
            "loss/train": ("step", [0, 10, 5005], [7.0, 6.9, 6.0]),
            "accuracy/train": ("step", [0, 10, 5005], [0.0, 0.39, 2.39]),
            "accuracy/train/top5": ("step", [0, 10, 5005], [0.39, 1.17, 5.17]),
        },
    ),
    "yolo tables": (
        "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        "        1/2      3.11G      1.234      2.345      1.111         35        640: 100%|██████████| 8/8"
        " [00:02<00:00,  3.9it/s]\n"
        "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|███| 4/4"
        " [00:01<00:00,  3.1it/s]\n"
        "                   all        128        929       0.64      0.537      0.605      0.446\n\n"
        "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        "        2/2      3.15G      1.134      2.145      1.011         33        640: 100%|██████████| 8/8"
        " [00:02<00:00,  3.9it/s]\n"
        "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|███| 4/4"
        " [00:01<00:00,  3.1it/s]\n"
        "                   all        128        929       0.66      0.547      0.615      0.456\n",
        {
            "loss/train/box": ("step", [8, 16], [1.234, 1.134]),
            "loss/train/cls": ("step", [8, 16], [2.345, 2.145]),
            "map/val": ("epoch", [1, 2], [0.446, 0.456]),
            "map/val/50": ("epoch", [1, 2], [0.605, 0.615]),
            "precision/val": ("epoch", [1, 2], [0.64, 0.66]),
        },
    ),
    "skorch table": (
        "  epoch    train_loss    valid_acc    valid_loss     dur\n"
        "-------  ------------  -----------  ------------  ------\n"
        "      1        \x1b[36m0.6868\x1b[0m       \x1b[32m0.5300\x1b[0m        \x1b[35m0.6800\x1b[0m  0.1012\n"
        "      2        \x1b[36m0.6568\x1b[0m       0.5200        0.6900  0.1010\n"
        "      3        0.6668       0.5100        0.7000  0.1010\n",
        {
            "loss/train": ("epoch", [1, 2, 3], [0.6868, 0.6568, 0.6668]),
            "accuracy/val": ("epoch", [1, 2, 3], [0.53, 0.52, 0.51]),
            "loss/val": ("epoch", [1, 2, 3], [0.68, 0.69, 0.7]),
        },
    ),
    "markdown table": (
        "| Epoch | Train Loss | Val Loss | LR |\n|-------|------------|----------|----|\n"
        "| 1 | 0.9 | 1.0 | 0.001 |\n| 2 | 0.7 | 0.9 | 0.001 |\n",
        {"loss/train": ("epoch", [1, 2], [0.9, 0.7]), "loss/val": ("epoch", [1, 2], [1.0, 0.9])},
    ),
    "lightning rich bar": (
        "Epoch 0/9  ━━━━━━━━━━━━━━━━ 10/20 0:00:05 • 0:00:10 2.10it/s v_num: 3.000 train_loss: 0.90\n"
        "Epoch 0/9  ━━━━━━━━━━━━━━━━ 20/20 0:00:10 • 0:00:00 2.10it/s v_num: 3.000 train_loss: 0.80\n"
        "Epoch 1/9  ━━━━━━━━━━━━━━━━ 10/20 0:00:05 • 0:00:10 2.10it/s v_num: 3.000 train_loss: 0.70\n",
        {"loss/train": ("step", [10, 20, 30], [0.9, 0.8, 0.7])},
    ),
    "boxed tables": (
        "".join(
            "---------------------------------\n| rollout/           |          |\n"
            f"|    ep_len_mean     | {20 + k}.5     |\n|    ep_rew_mean     | {20 + k}.3     |\n"
            "| time/              |          |\n|    fps             | 1031     |\n"
            f"|    iterations      | {k}        |\n|    total_timesteps | {2048 * k}     |\n"
            f"| train/             |          |\n|    approx_kl       | 0.00{k}    |\n"
            f"|    loss            | 8.{k}      |\n---------------------------------\n"
            for k in (1, 2, 3)
        ),
        {
            "reward/train": ("step", [2048, 4096, 6144], [21.3, 22.3, 23.3]),
            "loss/train": ("step", [2048, 4096, 6144], [8.1, 8.2, 8.3]),
        },
    ),
    "gan": (
        "[Epoch 0/2] [Batch 0/3] [D loss: 0.69] [G loss: 0.70]\n"
        "[Epoch 0/2] [Batch 2/3] [D loss: 0.59] [G loss: 0.80]\n"
        "[Epoch 1/2] [Batch 0/3] [D loss: 0.49] [G loss: 0.90]\n",
        {
            "loss/train/d": ("step", [0, 2, 3], [0.69, 0.59, 0.49]),
            "loss/train/g": ("step", [0, 2, 3], [0.7, 0.8, 0.9]),
        },
    ),
    "two bracketed counters": (
        "[0/2][0/100]\tLoss_D: 1.2\tLoss_G: 5.1\tD(x): 0.5\n"
        "[0/2][50/100]\tLoss_D: 1.1\tLoss_G: 5.0\tD(x): 0.5\n"
        "[1/2][0/100]\tLoss_D: 1.0\tLoss_G: 4.9\tD(x): 0.6\n",
        {"loss/train/d": ("step", [0, 50, 100], [1.2, 1.1, 1.0])},
    ),
    "phase words": (
        "Epoch 0/24\n----------\ntrain Loss: 0.5 Acc: 0.7\nval Loss: 0.3 Acc: 0.8\n\n"
        "Epoch 1/24\n----------\ntrain Loss: 0.4 Acc: 0.8\nval Loss: 0.2 Acc: 0.9\n",
        {
            "loss/train": ("epoch", [0, 1], [0.5, 0.4]),
            "accuracy/val": ("epoch", [0, 1], [0.8, 0.9]),
        },
    ),
    "phase before the colon": (
        "epoch 1\nValidation: loss 0.4\nepoch 2\nValidation: loss 0.3\n",
        {"loss/val": ("epoch", [1, 2], [0.4, 0.3])},
    ),
    "train and val on one line": (
        "Epoch 1 | Train Loss: 0.5 | Train Acc: 91.2% | Val Loss: 0.6 | Acc: 0.8\n"
        "Epoch 2 | Train Loss: 0.4 | Train Acc: 92.2% | Val Loss: 0.5 | Acc: 0.9\n",
        {
            "accuracy/train": ("epoch", [1, 2], [91.2, 92.2]),
            "accuracy/val": ("epoch", [1, 2], [0.8, 0.9]),
        },
    ),
    "value after the counter": (
        "Cost after iteration 0: 0.693\nCost after iteration 100: 0.584\n",
        {"loss/train": ("step", [0, 100], [0.693, 0.584])},
    ),
    "keras guide": (
        "Start of epoch 0\nTraining loss (for one batch) at step 0: 131.3794\n"
        "Training loss (for one batch) at step 100: 1.2\nTraining acc over epoch: 0.9332\n"
        "Start of epoch 1\nTraining loss (for one batch) at step 0: 1.1\n"
        "Training loss (for one batch) at step 100: 0.9\nTraining acc over epoch: 0.9532\n",
        {
            "loss/train": ("step", [0, 100, 200, 300], [131.3794, 1.2, 1.1, 0.9]),
            "accuracy/train": ("epoch", [0, 1], [0.9332, 0.9532]),
        },
    ),
    "thousands and infinities": (
        "step 1,000 loss: 1,234.5\nstep 2,000 loss: inf\nstep 3,000 loss: -inf\nstep 4,000 loss: NaN\n",
        {
            "loss/train": (
                "step",
                [1000, 2000, 3000, 4000],
                [1234.5, math.inf, -math.inf, math.nan],
            )
        },
    ),
    "no counter": (
        "loss: 0.5\nloss: 0.4\nloss: 0.3\n",
        {"loss/train": ("point", [0, 1, 2], [0.5, 0.4, 0.3])},
    ),
    "best line repeats a value": (
        "Epoch 1/3 - Train Loss: 4.05, Val Loss: 3.25\n  saved model (val_loss=3.25)\n"
        "Epoch 2/3 - Train Loss: 3.12, Val Loss: 2.84\n  saved model (val_loss=2.84)\n"
        "Epoch 3/3 - Train Loss: 2.80, Val Loss: 2.59\n  saved model (val_loss=2.59)\n",
        {"loss/val": ("epoch", [1, 2, 3], [3.25, 2.84, 2.59])},
    ),
    "tensors": (
        "step 1 loss: tensor(2.3026, device='cuda:0', grad_fn=<NllLossBackward0>)\n"
        "step 2 loss: tensor(2.2026, device='cuda:0', grad_fn=<NllLossBackward0>)\n",
        {"loss/train": ("step", [1, 2], [2.3026, 2.2026])},
    ),
    "another language": (
        "轮次: 1 损失: 0.5 准确率: 90.5%\n轮次: 2 损失: 0.4 准确率: 91.5%\n",
        {
            "loss/train": ("epoch", [1, 2], [0.5, 0.4]),
            "accuracy/train": ("epoch", [1, 2], [90.5, 91.5]),
        },
    ),
    "bars whose carriage returns were lost": (
        "  0%|          | 0/40 [00:00<?, ?it/s][rank0]: W note: nothing\n"
        "  2%|▎         | 9/40 [00:09<00:31,  1.0s/it]  5%|▎         | 10/40 [00:10<00:30,  1.0s/it]"
        "            {'loss': 1.5, 'learning_rate': 5e-05, 'epoch': 0.01}\n"
        " 25%|▎         | 10/40 [00:10<00:30,  1.0s/it] 50%|▎         | 20/40 [00:20<00:20,  1.0s/it]"
        "            {'loss': 1.4, 'learning_rate': 4e-05, 'epoch': 0.01}\n"
        " 50%|▎         | 20/40 [00:20<00:20,  1.0s/it] 75%|▎         | 30/40 [00:30<00:10,  1.0s/it]"
        "            {'loss': 1.3, 'learning_rate': 3e-05, 'epoch': 0.02}\n",
        {"loss/train": ("step", [10, 20, 30], [1.5, 1.4, 1.3])},
    ),
    "postfix in bars without carriage returns": (
        "Epoch 1:  50%|██ | 1/2 [00:01<00:01,  1.0it/s, loss=0.9]Epoch 1: 100%|███| 2/2 [00:02<00:00,"
        "  1.0it/s, loss=0.8]\n",
        {"loss/train": ("step", [1, 2], [0.9, 0.8])},
    ),
    "ordinal counter on its own line": (
        "current step: 1th step\nbatch loss:4.02\ncurrent step: 2th step\nbatch loss:3.91\n",
        {"loss/train": ("step", [1, 2], [4.02, 3.91])},
    ),
    "short names": (
        "epoch=0 i=0/2 total_loss=3.7 spectro_loss=0.9\nepoch=0 i=1/2 total_loss=3.6 spectro_loss=0.8\n"
        "epoch=1 i=0/2 total_loss=3.5 spectro_loss=0.7\n",
        {
            "loss/train": ("step", [0, 1, 2], [3.7, 3.6, 3.5]),
            "loss/train/spectro": ("step", [0, 1, 2], [0.9, 0.8, 0.7]),
        },
    ),
    "plural counter": (
        "(epoch: 1, iters: 100, time: 0.1) G_GAN: 1.2 G_loss: 5.6\n"
        "(epoch: 1, iters: 200, time: 0.1) G_GAN: 1.1 G_loss: 5.5\n",
        {"loss/train/g": ("step", [100, 200], [5.6, 5.5])},
    ),
    "summary after validation": (
        "Epoch: [0][10/20]\tLoss 6.9 (7.0)\tAcc@1 0.39 (0.14)\n * Acc@1 55.5 Acc@5 80.2\n"
        "Epoch: [1][10/20]\tLoss 6.8 (6.9)\tAcc@1 0.49 (0.24)\n * Acc@1 56.5 Acc@5 81.2\n",
        {"accuracy/val": ("epoch", [0, 1], [55.5, 56.5])},
    ),
    "epoch in characters": (
        "第1轮 训练损失: 0.5 验证损失: 0.6\n第2轮 训练损失: 0.4 验证损失: 0.5\n",
        {"loss/val": ("epoch", [1, 2], [0.6, 0.5])},
    ),
    "a number in the name": (
        "epoch 1 mAP 0.5 : 0.6795, mAP : 0.3657\nepoch 2 mAP 0.5 : 0.7, mAP : 0.4\n",
        {
            "map/val/50": ("epoch", [1, 2], [0.6795, 0.7]),
            "map/val": ("epoch", [1, 2], [0.3657, 0.4]),
        },
    ),
    "reports whose line ends were lost": (
        "".join(f"Episode {i}\tFrame {20 * i} \tAverage100 Score: {i}.50" for i in range(1, 41))
        + "\n",
        {"score/train/average100": ("step", list(range(1, 41)), [i + 0.5 for i in range(1, 41)])},
    ),
    "accuracy of the network": (
        "[1,  2000] loss: 2.2\nAccuracy of the network on the 10000 test images: 53 %\n",
        {"accuracy/test": ("epoch", [1], [53])},
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_format(name: str, tmp_path: Path) -> None:
    text, expected = FORMATS[name]
    run = read_text(tmp_path, text)
    for series, (axis, at, told) in expected.items():
        assert series in run.series, sorted(run.series)
        assert (run.series[series].axis, steps(run, series)) == (axis, at)
        np.testing.assert_allclose(run.series[series].values, told, rtol=1e-12, equal_nan=True)


NOT_METRICS = {
    "versions and paths": "torch 2.1.0+cu121, python 3.11.4\nsaving to /data/run_7/step_100/model-5.pt\n"
    "loading ./ckpt/epoch=3-step=100.ckpt\nsee https://example.org/issues/42?loss=3\n" * 4,
    "dates, times, sizes, shapes": "2024-01-01 10:00:00\n10:00:01 started\nimages: torch.Size([64, 3, 32, 32])\n"
    "resized to 640x480 in 3.2s\n[12345] pid 12345 listening on port 29500\n" * 4,
    "model summary": "Layer (type)       Output Shape     Param #\n=================================\n"
    "conv1 (Conv2d)     [-1, 32, 26, 26]     320\nfc1 (Linear)      [-1, 128]     1,179,776\n"
    "Total params: 1,199,882\nTrainable params: 1,199,882\n",
    "machine": "Using 4 GPUs\nUsing device cuda:0\nGPU 0: NVIDIA A100-SXM4-80GB\nworkers: 8 seed: 42\n",
    "sentences": "Found 60000 images belonging to 10 classes\nretrying in 5 seconds (attempt 3 of 5)\n"
    "connection to 10.0.0.1:8080 failed with error 111\nexit code: 1\n" * 3,
    "a metric in a traceback": 'Traceback (most recent call last):\n  File "train.py", line 12, in <module>\n'
    "    loss = model(x)[0] * 2\nValueError: expected 3 channels, got 1\n",
    "best so far": "val_loss improved from 0.51 to 0.49, saving model\n" * 3,
}


@pytest.mark.parametrize("name", NOT_METRICS)
def test_numbers_that_are_no_metrics(name: str, tmp_path: Path) -> None:
    assert list(read_text(tmp_path, NOT_METRICS[name]).series) == []


@pytest.mark.parametrize(
    "prefix",
    ["[rank{}]: ", "[{}] ", "rank={} ", "(RANK {}) ", "{}: ", "[Rank {}] ", "[default{}]:"],
)
def test_ranks(prefix: str, tmp_path: Path) -> None:
    lines = [
        prefix.format(r) + f"step {s} loss: {s + r / 10}" for s in (1, 2, 3) for r in (0, 1, 2)
    ]
    run = read_text(tmp_path, "\n".join(lines))
    assert values(run, "loss/train") == [1.0, 2.0, 3.0]
    assert values(run, "ranks/1/loss/train") == [1.1, 2.1, 3.1]
    assert steps(run, "ranks/2/loss/train") == [1, 2, 3]


def test_a_growing_number_before_the_line_is_a_counter(tmp_path: Path) -> None:
    run = read_text(tmp_path, "".join(f"{10 * i}: loss {1 / i:.3f}\n" for i in range(1, 5)))
    assert steps(run, "loss/train") == [10, 20, 30, 40]


def test_names_with_digits_are_different_metrics(tmp_path: Path) -> None:
    text = "".join(
        f"step {s} layer{k} grad_norm: {s * k}.5 top{k}: 0.{k}\n" for s in range(40) for k in (1, 5)
    )
    run = read_text(tmp_path, text)
    assert {"accuracy/train", "accuracy/train/top5"} <= set(run.series)
    assert values(run, "accuracy/train/top5") == [0.5] * 40
    assert len([n for n in run.series if "grad_norm" in n]) == 2


def test_a_wide_name_touches_the_one_before_it(tmp_path: Path) -> None:
    rows = [f"{i:5d} {30.0 - i:9.3f} {1.0 + i:9.3f} {31.0 - i:10.3f}" for i in range(5)]
    text = f"{'epoch':>5} {'recon':>9} {'kl':>9} {'test_recon':>10}"
    run = read_text(tmp_path, "\n".join([text, *rows]))
    assert {"loss/train/recon", "kl/train", "loss/test/recon"} <= set(run.series)
    assert run.series["loss/test/recon"].values.tolist() == [31.0, 30.0, 29.0, 28.0, 27.0]


def test_decimals_of_what_never_changes_are_kept(tmp_path: Path) -> None:
    lines = [
        f"epoch {i} train_loss={1.6 - i / 100:.4f} val_loss=0.53100 lr=0.00000" for i in range(6)
    ]
    run = read_text(tmp_path, "\n".join(lines))
    decimals = {name: series.origin.decimals for name, series in run.series.items()}
    assert decimals == {"loss/train": 0, "loss/val": 5, "lr": 5}


def test_unknown_names_are_series_only_if_they_recur(tmp_path: Path) -> None:
    text = "step 1 loss: 0.5 diversity: 0.1\nstep 2 loss: 0.4 diversity: 0.2\nstep 3 loss: 0.3"
    assert "other/diversity" not in read_text(tmp_path, text + "\n").series
    assert "other/diversity" in read_text(tmp_path, text + " diversity: 0.3\n").series


def test_optional_fields_do_not_split_a_series(tmp_path: Path) -> None:
    lines = [
        f"epoch {e} loss: {1 / e:.3f}" + f" val_loss: {2 / e:.3f}" * (e % 5 == 0)
        for e in range(1, 21)
    ]
    run = read_text(tmp_path, "\n".join(lines))
    assert steps(run, "loss/train") == list(range(1, 21))
    assert steps(run, "loss/val") == [5, 10, 15, 20]
    assert not [n for n in run.series if "@" in n]


def test_places_are_lines(tmp_path: Path) -> None:
    run = read_text(tmp_path, "hello\r\n\r\nstep 1 loss: 0.5\r\nstep 2 loss: 0.4\r\n")
    loss = run.series["loss/train"]
    assert loss.places.tolist() == [3, 4]
    assert loss.where(0) == "line 3"
    assert loss.origin.name == "loss"


def test_validation_without_a_counter_takes_the_step_before(tmp_path: Path) -> None:
    lines = [
        line
        for s in range(100, 500, 100)
        for line in (
            f"step {s - 50} loss: 1.{s}",
            f"step {s} loss: 1.{s}1",
            f"Validation loss: 2.{s}",
        )
    ]
    run = read_text(tmp_path, "\n".join(lines))
    assert steps(run, "loss/val") == [100, 200, 300, 400]


def test_settings(tmp_path: Path) -> None:
    text = (
        "Namespace(lr=0.1, epochs=3, data='/data', betas=(0.9, 0.95), amp=True)\n"
        "2024-01-01 10:00:00 INFO optimizer: Adam\n  batch_size ........ 64\nweight decay: 1e-4\n"
        "{'dropout': 0.1, 'hidden': 128}\nstep 1 loss: 0.5\nstep 2 loss: 0.4\nmomentum: 0.9\n"
    )
    run = read_text(tmp_path, text)
    found = {s.key: (s.value, s.locator) for s in run.config.settings}
    assert found["lr"] == (0.1, "line 1")
    assert found["epochs"] == (3, "line 1")
    assert found["betas"] == ((0.9, 0.95), "line 1")
    assert found["amp"] == (True, "line 1")
    assert found["optimizer"] == ("Adam", "line 2")
    assert found["batch_size"] == (64, "line 3")
    assert found["weight_decay"] == (1e-4, "line 4")
    assert found["dropout"] == (0.1, "line 5")
    assert "momentum" not in found
    assert "loss" not in found


EVENTS = {
    "warning": [
        "/venv/torch/x.py:12: UserWarning: var(): degrees of freedom is <= 0. Correction should be less",
        "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.",
        "2024-01-01 10:00:00 WARNING: gradient of layer fc is zero",
    ],
    "resume": [
        "Resuming training from checkpoint /ckpt/step_500.pt",
        "=> loaded checkpoint 'model_best.pth.tar'",
        "Restored optimizer state from checkpoint",
    ],
    "boundary": [
        "Switching to dataset B",
        "Entering stage 2",
        "Unfreezing the encoder",
        "Phase 2: long",
    ],
    "skipped-step": [
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
    ],
    "killed": [
        "Killed",
        "slurmstepd: error: *** JOB 4242 ON n1 CANCELLED AT 2024-01-01T10:00:00 DUE TO TIME LIMIT ***",
        "Received SIGTERM, shutting down",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=42.0",
    ],
    "empty-loader": [
        "lightning/data.py:106: Total length of `DataLoader` across ranks is zero. Please make sure"
    ],
    "disk-full": ["OSError: [Errno 28] No space left on device"],
    "oom": ["torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"],
}


@pytest.mark.parametrize(
    ("kind", "line"), [(k, line) for k, lines in EVENTS.items() for line in lines]
)
def test_events(kind: str, line: str, tmp_path: Path) -> None:
    text = (
        f"epoch 1 step 10 loss: 0.5\nepoch 1 step 20 loss: 0.4\n{line}\nepoch 1 step 30 loss: 0.3\n"
    )
    run = read_text(tmp_path, text)
    found = [e for e in run.events if e.kind == kind]
    assert [(e.locator, e.step, e.epoch) for e in found] == [("line 3", 20.0, 1.0)]


@pytest.mark.parametrize(
    "line",
    [
        "Downloading pretrained weights from hub",
        "resume: None",
        "Saved checkpoint to out/step_10.pt",
        "DeprecationWarning: the imp module is deprecated",
        "loading tokenizer from checkpoint gpt2",
        "stage: train",
    ],
)
def test_lines_that_are_no_events(line: str, tmp_path: Path) -> None:
    assert read_text(tmp_path, f"step 1 loss: 1.0\n{line}\nstep 2 loss: 0.9\n").events == ()


def test_repeated_warnings_are_one_event(tmp_path: Path) -> None:
    text = "x.py:3: UserWarning: loss is odd\n" * 5
    (event,) = read_text(tmp_path, text).events
    assert (event.locator, event.text) == ("line 1", "UserWarning: loss is odd (5 times)")


def test_failures_know_their_line_and_step(tmp_path: Path) -> None:
    text = (
        "step 1 loss: 1.0\nstep 2 loss: 0.9\nTraceback (most recent call last):\n"
        '  File "train.py", line 12, in <module>\n    main()\n  File "train.py", line 8, in main\n'
        "    loss.backward()\nRuntimeError: one of the variables needed was modified\n"
    )
    (failure,) = read_text(tmp_path, text).failures
    assert (failure.type, failure.locator, failure.step) == ("RuntimeError", "line 8", 2.0)
    assert [f.line for f in failure.frames] == [12, 8]


ODD = {
    "null bytes": b"step 1 loss: 0.5\n\0\0\0\0step 2 loss: 0.4\nstep 3 loss: 0.3\n",
    "stray bytes": b"step 1 loss: 0.5\n\xff\xfe\x80 caf\xe9 1\nstep 2 loss: 0.4\nstep 3 loss: 0.3\n",
    "latin-1": "step 1 loss: 0.5 é\nstep 2 loss: 0.4 é\nstep 3 loss: 0.3 é\n".encode("latin-1"),
    "utf-16": "step 1 loss: 0.5\r\nstep 2 loss: 0.4\r\nstep 3 loss: 0.3\r\n".encode("utf-16"),
    "utf-8 mark": b"\xef\xbb\xbfstep 1 loss: 0.5\nstep 2 loss: 0.4\nstep 3 loss: 0.3",
    "colours": b"\x1b[32mstep\x1b[0m 1 \x1b[1;31mloss: 0.5\x1b[0m\n\x1b[32mstep\x1b[0m 2 loss: 0.4\nstep 3 loss: 0.3\n",
    "a line without end": b"step 1 loss: 0.5\n"
    + b"x" * 10_000_000
    + b"\nstep 2 loss: 0.4\nstep 3 loss: 0.3\n",
    "half a line": b"step 1 loss: 0.5\nstep 2 loss: 0.4\nstep 3 loss: 0.3\nstep 4 lo",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files(name: str, tmp_path: Path) -> None:
    run = read_text(tmp_path, ODD[name])
    assert (steps(run, "loss/train"), values(run, "loss/train")) == ([1, 2, 3], [0.5, 0.4, 0.3])


def test_a_cut_line_is_told(tmp_path: Path) -> None:
    run = read_text(tmp_path, ODD["a line without end"])
    assert "cut" in run.artifacts[0].warnings[0]
    assert run.series["loss/train"].places.tolist() == [1, 3, 4]


@pytest.mark.parametrize(
    "data", [b"", b"\n\n  \n", bytes(range(256)) * 40, b"\x80\x04\x95" + bytes(500)]
)
def test_unreadable(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(UnreadableArtifact, match="Try"):
        read_text(tmp_path, data)


def test_text_without_metrics_is_an_empty_run(tmp_path: Path) -> None:
    run = read_text(tmp_path, "Once upon a time\nthere was a log without numbers\n")
    assert (dict(run.series), run.events, run.failures) == ({}, (), ())


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        (FORMATS["tqdm"][0], 0.3, 0.6),
        (FORMATS["keras 2"][0], 0.3, 0.6),
        (FORMATS["python dict"][0], 0.3, 0.6),
        ('Traceback (most recent call last):\n  File "a.py", line 1\nValueError: no\n', 0.5, 0.6),
        ("Dear diary,\ntoday was a day.\n", 0.05, 0.2),
        ("", 0.0, 0.0),
        ("\0\1\2\3\4" * 100, 0.0, 0.0),
    ],
)
def test_sniff(text: str, low: float, high: float) -> None:
    assert low <= sniff(Path("any.txt"), text.encode()) <= high


def test_thinning_keeps_what_matters() -> None:
    rng = np.random.default_rng(0)
    rows = np.full((50_000, 7), np.nan)
    rows[:, 0] = np.arange(50_000)
    rows[:, 5:] = rng.normal(size=(50_000, 2))
    rows[12_345, 5] = 99.0
    rows[40_000:40_010, 6] = np.nan
    sheet = Sheet((SeriesKey(None, "", "a", None), SeriesKey(None, "", "b", None)), LinePlan())
    for start in range(0, 50_000, 1_000):
        sheet.add(rows[start : start + 1_000], 2_000)
    kept = sheet.rows()
    assert 500 < len(kept) == sheet.count <= 2_000
    assert {0, 12_345, 40_000, 40_009, 40_010, 49_999} <= set(kept[:, 0].astype(int).tolist())
    assert bool(np.all(np.diff(kept[:, 0]) > 0))


def lines_of_logs() -> st.SearchStrategy[list[str]]:
    kinds = [t.replace("\r", "\n").split("\n") for t, _ in FORMATS.values()]
    kinds += [t.split("\n") for t in NOT_METRICS.values()] + list(EVENTS.values())
    real = st.sampled_from([line for lines in kinds for line in lines])
    number = st.one_of(
        st.floats(allow_nan=True, width=64).map(repr),
        st.floats(allow_nan=False, allow_infinity=False).map(lambda x: f"{x:.4e}"),
        st.integers(0, 10**20).map(lambda x: f"{x:,}"),
        st.floats(0, 1e6).map(lambda x: f"{x:.3f}"),
    )
    made = st.builds(
        "step {} loss: {} acc@{} {} rank{} lr={}".format,
        st.integers(0, 10**9), number, st.integers(1, 9), number, st.integers(0, 3), number,
    )  # fmt: skip
    return st.lists(st.one_of(real, made), max_size=80)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=lines_of_logs(), size=st.integers(40, 4000))
def test_reading_at_once_and_line_by_line_agree(
    tmp_path: Path, lines: list[str], size: int
) -> None:
    path = tmp_path / "mixed.log"
    path.write_text("\n".join(lines * 3), encoding="utf-8", newline="")
    at_once = LogScan(Blocks(path), many=1)
    one_by_one = LogScan(Blocks(path, size=size), many=10**9)
    at_once.run()
    one_by_one.run()
    ours = {told: sheet.rows() for told, sheet in at_once.ledger.sheets.items()}
    theirs = {told: sheet.rows() for told, sheet in one_by_one.ledger.sheets.items()}
    assert ours.keys() == theirs.keys()
    for told, rows in ours.items():
        np.testing.assert_array_equal(rows, theirs[told])


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    data=st.one_of(
        st.binary(max_size=2000), st.text(max_size=600).map(lambda t: t.encode("utf-8", "replace"))
    )
)
def test_nothing_makes_it_crash(tmp_path: Path, data: bytes) -> None:
    sniff(tmp_path, data)
    with contextlib.suppress(UnreadableArtifact):
        read_text(tmp_path, data)


def test_reading_stops_when_the_time_is_up(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text("".join(f"step {i} loss: 0.{i}\n" for i in range(1000)))
    with deadline.until(0.0):
        scan = LogScan(Blocks(path, size=1000))
        scan.run()
    assert scan.is_cut_short
    assert 0 < scan.blocks.lines < 100
    with deadline.until(0.0):
        assert read(path).artifacts[0].warnings == ()  # a small log is one block


def test_a_log_read_in_parts_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    lines = [line for text, _ in FORMATS.values() for line in text.replace("\r", "\n").split("\n")]
    lines += [line for some in EVENTS.values() for line in some]
    path.write_text("\n".join(lines * 3), encoding="utf-8")
    whole, parted = LogScan(Blocks(path)), LogScan(Blocks(path))
    whole.run()
    scan_log(parted, min_part=path.stat().st_size // 2)
    assert parted.blocks.end is not None
    assert parted.blocks.lines == whole.blocks.lines
    ours = {told: sheet.rows() for told, sheet in parted.ledger.sheets.items()}
    theirs = {told: sheet.rows() for told, sheet in whole.ledger.sheets.items()}
    assert ours.keys() == theirs.keys()
    for told, rows in ours.items():
        np.testing.assert_array_equal(rows, theirs[told])
    told = [[(h.kind, h.text, h.place) for h in s.notes.happenings] for s in (whole, parted)]
    assert told[0] == told[1]
    assert whole.notes.headings == parted.notes.headings
