"""The console-log reader: each format as people print it, and what must not be taken for a metric."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from traindx.model import Run
from traindx.readers.console.reader import read


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
            "loss/train": ("step", [64, 6464, 60064, 66464], [2.303494, 2.294637, 2.103494, 2.094637]),
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
    known = {n for n in run.series if n.startswith("loss/")}
    assert known <= set(expected) | {n for n in known if len(run.series[n]) >= 1}
