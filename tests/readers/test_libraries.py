"""What training libraries print, read under the names that their users know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from traindx.readers.opening import open_paths

Line = Callable[[int], str]
Found = dict[str, list[float]]

FORMS: dict[str, tuple[Line, Found]] = {
    "Transformers 5 prints its values as text": (
        lambda i: (
            f"{{'loss': '{4 / i:.3f}', 'grad_norm': '1.{i}', 'learning_rate': '2e-05', "
            f"'epoch': '0.{i}'}}"
        ),
        {"loss/train": [4.0, 2.0, 1.333], "grad_norm": [1.1, 1.2, 1.3], "lr": [2e-5] * 3},
    ),
    "TRL, DPO": (
        lambda i: (
            f"{{'loss': 0.6{i}, 'grad_norm': 3.1, 'learning_rate': 5e-07, 'rewards/chosen': 0.0{i},"
            f" 'rewards/rejected': -0.0{i}, 'rewards/accuracies': 0.5{i}, 'rewards/margins': 0.1,"
            f" 'logps/chosen': -201.5, 'epoch': 0.0{i}}}"
        ),
        {
            "loss/train": [0.61, 0.62, 0.63],
            "reward/train/chosen": [0.01, 0.02, 0.03],
            "accuracy/train/rewards": [0.51, 0.52, 0.53],
        },
    ),
    "TRL, GRPO": (
        lambda i: (
            f"{{'loss': 0.00{i}, 'learning_rate': 1e-06, 'completions/mean_length': 20{i}.5,"
            f" 'rewards/format_reward/mean': 0.2{i}, 'rewards/format_reward/std': 0.4,"
            f" 'reward': 0.4{i}, 'reward_std': 0.3, 'kl': 0.00{i}, 'entropy': 1.{i}, 'epoch': 0.{i}}}"
        ),
        {
            "reward/train": [0.41, 0.42, 0.43],
            "reward/train/format": [0.21, 0.22, 0.23],
            "kl/train": [0.001, 0.002, 0.003],
            "entropy/train": [1.1, 1.2, 1.3],
        },
    ),
    "verl": (
        lambda i: (
            f"\x1b[36m(TaskRunner pid=77)\x1b[0m step:{i} - global_seqlen/mean:811.5 - actor/entropy:"
            f"0.{i} - actor/pg_loss:-0.0{i} - actor/grad_norm:0.5{i} - actor/lr:1e-06 - critic/score/mean"
            f":0.1{i} - critic/score/max:1.0 - critic/rewards/mean:np.float64(0.2{i}) - timing_s/step:30.1"
        ),
        {
            "entropy/train": [0.1, 0.2, 0.3],
            "loss/train/actor_pg": [-0.01, -0.02, -0.03],
            "reward/train": [0.21, 0.22, 0.23],
            "grad_norm": [0.51, 0.52, 0.53],
            "lr": [1e-6] * 3,
        },
    ),
    "OpenRLHF": (
        lambda i: (
            f"Train epoch [1/1]:   {i}%|█         | {i}/90 [01:2{i}<50:00, 12.1s/it, policy_loss=-0.01"
            f"{i}, lr=9e-7, reward=0.4{i}, glen=120, kl=0.00{i}]"
        ),
        {"loss/train/policy": [-0.011, -0.012, -0.013], "reward/train": [0.41, 0.42, 0.43]},
    ),
    "torchtitan": (
        lambda i: (
            f"[rank0]:\x1b[34m2025-02-01 10:00:0{i},123 - root - INFO - \x1b[31mstep:  {i}  \x1b[32mloss:"
            f"  8.{i}2  \x1b[33mgrad_norm:  1.2{i}  \x1b[34mmemory:  0.7GiB(0.9%)  tps: 1,234  mfu: 3.9%"
        ),
        {"loss/train": [8.12, 8.22, 8.32], "grad_norm": [1.21, 1.22, 1.23]},
    ),
    "torchtune": (
        lambda i: f"Step {i} | loss:2.{i} lr:2e-05 tokens_per_second_per_gpu:812.5 grad_norm:1.{i}",
        {"loss/train": [2.1, 2.2, 2.3], "lr": [2e-5] * 3, "grad_norm": [1.1, 1.2, 1.3]},
    ),
    "Megatron-LM": (
        lambda i: (
            f" [2024-05-01 10:00:0{i}] iteration        {i}/    9000 | consumed samples:       {8 * i} |"
            f" elapsed time per iteration (ms): 812.4 | learning rate: 1.500000E-06 | lm loss: 1.0{i}E+01 |"
            f" loss scale: 1.0 | grad norm: 5.{i} | number of nan iterations:   0 |"
        ),
        {"loss/train": [10.1, 10.2, 10.3], "grad_norm": [5.1, 5.2, 5.3], "loss_scale": [1.0] * 3},
    ),
    "Megatron-LM, validation": (
        lambda i: (
            f" validation loss at iteration {i} | lm loss value: 5.{i}E+00 | lm loss PPL: 2.{i}E+02 |"
        ),
        {"loss/val": [5.1, 5.2, 5.3], "perplexity/val": [210.0, 220.0, 230.0]},
    ),
    "DeepSpeed": (
        lambda i: f"steps: {i} loss: 5.{i} iter time (s): 0.51{i} samples/sec: 15.625",
        {"loss/train": [5.1, 5.2, 5.3], "time/iter_time": [0.511, 0.512, 0.513]},
    ),
    "mmengine": (
        lambda i: (
            f"2024/05/01 10:00:0{i} - mmengine - INFO - Epoch(train)  [{i}][ 50/1000]  base_lr: 2.0e-02 lr:"
            f" 1.9e-03  eta: 1 day, 0:10:00  time: 0.3{i}  data_time: 0.01  memory: 3456  grad_norm: 2.{i}"
            f"  loss: 1.{i}  loss_cls: 0.6\n2024/05/01 10:01:0{i} - mmengine - INFO - Epoch(val) [{i}][625/625]"
            f"    coco/bbox_mAP: 0.3{i}  data_time: 0.9  time: 0.8"
        ),
        {
            "loss/train": [1.1, 1.2, 1.3],
            "time/time": [0.31, 0.32, 0.33],
            "time/val/time": [0.8] * 3,
            "map/val/coco_bbox": [0.31, 0.32, 0.33],
        },
    ),
    "timm": (
        lambda i: (
            f"Train: 0 [{50 * i:4d}/1251 ({i:3d}%)]  Loss: 6.9{i} (6.95)  Time: 1.2{i}s,  213.3/s  (1.3s,"
            f" 204.8/s)  LR: 1.000e-05  Data: 0.51 (0.60)\nTest: [{16 * i:4d}/48]  Time: 0.5 (0.6)  Loss:"
            f"  6.9 (6.8{i})  Acc@1: 0.1 ( 0.2{i})"
        ),
        {
            "loss/train": [6.91, 6.92, 6.93],
            "loss/val": [6.81, 6.82, 6.83],
            "accuracy/val": [0.21, 0.22, 0.23],
            "time/time": [1.21, 1.22, 1.23],
        },
    ),
    "MaxText": (
        lambda i: (
            f"completed step: {i}, seconds: 0.9, TFLOP/s/device: 100.1, Tokens/s/device: 800.5,"
            f" total_weights: 65536, loss: 10.{i}"
        ),
        {"loss/train": [10.1, 10.2, 10.3]},
    ),
    "nanotron": (
        lambda i: (
            f"05/01/2024 10:00:0{i} [INFO|DP=0|PP=0|TP=0|node-1]: iteration: {i} / 90 | consumed_tokens:"
            f" 2.1M | tokens_per_sec: 1.7K | lm_loss: 10.{i} | lr: 1e-05 | grad_norm: 1.{i}"
        ),
        {"loss/train": [10.1, 10.2, 10.3], "lr": [1e-5] * 3, "grad_norm": [1.1, 1.2, 1.3]},
    ),
    "fairseq": (
        lambda i: (
            f"epoch 001:  {i} / 90 loss=12.{i}, nll_loss=11.{i}, ppl=99.1, num_updates={i}, lr=1e-05, gnorm=2.{i}"
        ),
        {"loss/train": [12.1, 12.2, 12.3], "loss/train/nll": [11.1, 11.2, 11.3]},
    ),
    "Detectron2": (
        lambda i: (
            f"[05/01 10:00:0{i} d2.utils.events]:  eta: 0:10:00  iter: {20 * i - 1}  total_loss: 2.{i}"
            f"  loss_cls: 1.2  time: 0.3  data_time: 0.01  lr: 0.0002  max_mem: 2345M"
        ),
        {"loss/train": [2.1, 2.2, 2.3], "loss/train/cls": [1.2] * 3},
    ),
    "DETR": (
        lambda i: (
            f"Epoch: [0]  [  {10 * i}/100]  eta: 0:10:00  lr: 0.0001  loss: 40.{i} (42.1)  loss_ce: 5.{i} (5.2)"
            f"  time: 0.5  data: 0.01  max mem: 5000"
        ),
        {"loss/train": [40.1, 40.2, 40.3], "loss/train/ce": [5.1, 5.2, 5.3]},
    ),
    "tianshou": (
        lambda i: (
            f"Epoch #{i}: 9001it [00:12, 800.1it/s, env_step={i}000, gradient_step=100, len=200, loss=0.{i},"
            f" n/ep=10, rew={i}0.00]\nEpoch #{i}: test_reward: 19{i}.50 ± 10.20, best_reward: 200.0 ± 0.0 in #1"
        ),
        {"reward/train": [10.0, 20.0, 30.0], "reward/val": [191.5, 192.5, 193.5]},
    ),
    "PaddleClas": (
        lambda i: (
            f"[2022/01/01 10:00:0{i}] ppcls INFO: [Train][Epoch 1/100][Iter: {i}/200]lr(LinearWarmup): 0.001,"
            f" CELoss: 2.{i}, loss: 2.{i}, reader_cost: 0.05\n[2022/01/01 10:00:0{i}] ppcls INFO: [Eval]"
            f"[Epoch {i}][Avg]CELoss: 0.9{i}, loss: 0.9{i}, top1: 0.8{i}"
        ),
        {"loss/train": [2.1, 2.2, 2.3], "accuracy/val": [0.81, 0.82, 0.83]},
    ),
    "OLMo": (
        lambda i: (
            f"2024-01-01T10:00:0{i}.123Z INFO [train.py:700, rank=0] [step={i}/900]\n    train/CrossEntropyLoss"
            f"=10.{i}\n    optim/total_grad_norm=2.{i}\n    optim/learning_rate_group0=1e-05"
        ),
        {"loss/train": [10.1, 10.2, 10.3], "grad_norm": [2.1, 2.2, 2.3], "lr": [1e-5] * 3},
    ),
    "the log file of build-nanogpt": (
        lambda i: f"{250 * i} val 3.{i}\n{250 * i} train 2.{i}",
        {"loss/val": [3.1, 3.2, 3.3], "loss/train": [2.1, 2.2, 2.3]},
    ),
    "DARTS": (
        lambda i: (
            f"01/14 03:15:0{i} PM train {50 * i:03d} 2.{i}e+00 20.649511 71.84436{i}\n"
            f"01/14 03:25:0{i} PM valid {50 * i:03d} 1.{i}e+00 40.649511 81.84436{i}"
        ),
        {
            "loss/train": [2.1, 2.2, 2.3],
            "loss/val": [1.1, 1.2, 1.3],
            "accuracy/val": [40.649511] * 3,
        },
    ),
    "pix2pix": (
        lambda i: (
            f"(epoch: {i}, iters: 100, time: 0.334, data: 0.702) G_GAN: 1.{i} D: 2.{i} idt: 0.{i} kl: 0.0{i}"
        ),
        {
            "loss/train/g_gan": [1.1, 1.2, 1.3],
            "loss/train/d": [2.1, 2.2, 2.3],
            "loss/train/idt": [0.1, 0.2, 0.3],
            "kl/train": [0.01, 0.02, 0.03],
        },
    ),
    "PyTorch Geometric": (
        lambda i: f"Epoch: {i:03d}, Loss: 1.9{i}, Train: 0.8{i}, Val: 0.7{i}, Test: 0.6{i}",
        {"loss/train": [1.91, 1.92, 1.93], "score/val": [0.71, 0.72, 0.73]},
    ),
    "Spinning Up": (
        lambda i: (
            f"{'-' * 40}\n|             Epoch |               {i} |\n"
            f"|      AverageEpRet |            1{i}.5 |\n|            LossPi |           -0.0{i} |"
        ),
        {"reward/train": [11.5, 12.5, 13.5], "loss/train/pi": [-0.01, -0.02, -0.03]},
    ),
    "OpenKE and RotatE": (
        lambda i: f"2020-01-01 10:00:0{i},1 INFO     Valid MRR at step {i}00: 0.3{i}",
        {"mrr/val": [0.31, 0.32, 0.33]},
    ),
    "a log in Portuguese": (
        lambda i: f"Época {i}, Perda treino: 0.{i}, Perda validação: 0.5{i}",
        {"loss/train": [0.1, 0.2, 0.3], "loss/val": [0.51, 0.52, 0.53]},
    ),
    "scores with their counts": (
        lambda i: (
            f"step {i}5 / 4000 (epoch 0.0{i} / 20):\n  learning_rate = 1.00e-03, loss_average ="
            f" 1.4{i}e-01\n  validation accuracy: 0.4{i} (272744 / 614400), loss: 1.8{i}e+00"
        ),
        {"loss/train": [0.141, 0.142, 0.143], "accuracy/val": [0.41, 0.42, 0.43]},
    ),
    "Catalyst": (
        lambda i: (
            f"{i}/9 * Epoch {i} (train): loss=0.5{i} | accuracy01=0.7{i} | lr=0.001\n"
            f"{i}/9 * Epoch {i} (valid): loss=0.4{i} | accuracy01=0.8{i}"
        ),
        {"accuracy/train": [0.71, 0.72, 0.73], "loss/val": [0.41, 0.42, 0.43]},
    ),
    "an Estimator": (
        lambda i: (
            f"INFO:tensorflow:loss = 6.{i}, step = {i}00 (12.345 sec)\nINFO:tensorflow:Saving dict"
            f" for global step {i}00: accuracy = 0.7{i}, global_step = {i}00, loss = 0.8{i}"
        ),
        {"loss/train": [6.1, 6.2, 6.3], "loss/val": [0.81, 0.82, 0.83]},
    ),
    "the time of a whole epoch": (
        lambda i: f"Epoch {i}:\tTrain loss=0.{i}\tVal loss=0.2{i}\tlr=1.0e-04\ttime=12.{i}s",
        {"loss/val": [0.21, 0.22, 0.23], "time/time": [12.1, 12.2, 12.3]},
    ),
    "two networks by their letters": (
        lambda i: f"iter {i} D: 0.{i}1 G: 1.{i}1",
        {"loss/train/d": [0.11, 0.21, 0.31], "loss/train/g": [1.11, 1.21, 1.31]},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_form(tmp_path: Path, name: str) -> None:
    line, expected = FORMS[name]
    path = tmp_path / "train.log"
    path.write_text("\n".join(line(i) for i in (1, 2, 3)) + "\n", encoding="utf-8")
    run = open_paths([str(path)])
    found = {n: [round(float(v), 9) for v in run.series[n].values] for n in expected}
    assert found == expected
