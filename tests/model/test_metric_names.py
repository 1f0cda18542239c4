"""Canonical names: the same metric by whatever name, and no metric that is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx.model.metric_names import canonical, is_epoch, is_measured, is_step, kind_of, phase_of

CANONICAL = {
    "loss/train": "loss train_loss trainLoss train/loss loss/train Loss train_loss_epoch loss_epoch"
    " train_loss_step mean_loss total_loss epoch_loss training-loss nll_loss cross_entropy logloss",
    "loss/val": "val_loss eval_loss valid_loss validation/loss dev_loss train/val_loss held_out_loss"
    " holdout_loss",
    "loss/test": "test_loss loss/test",
    "loss/train/d": "d_loss loss_D D_loss lossD",
    "loss/train/g": "g_loss loss_G lossG",
    "loss/val/box": "val/box_loss",
    "loss/train/recon": "recon recon_loss reconstruction train/recon",
    "loss/test/recon": "test_recon",
    "loss/train/value": "value_loss train/value_loss",
    "accuracy/train": "acc accuracy train_acc Acc@1 Prec@1 top1 train_acc_top1_step"
    " categorical_accuracy",
    "accuracy/train/top5": "Acc@5 Prec@5 top5 train_acc_top5_epoch acc5",
    "accuracy/val": "val_acc eval_accuracy val_acc1 validation_accuracy",
    "map/val": "mAP metrics/mAP_0.5:0.95 metrics/mAP50-95(B) mAP@.5:.95",
    "map/val/50": "metrics/mAP_0.5 metrics/mAP50(B) mAP@0.5 AP50",
    "precision/val": "metrics/precision metrics/precision(B)",
    "wer/val": "wer eval_wer word_error_rate",
    "bleu/val": "bleu BLEU eval_bleu",
    "rouge/val/1": "rouge1 eval_rouge1",
    "mse/train": "mse mean_squared_error",
    "error/train/top1": "top1_err",
    "perplexity/val": "val_ppl eval_perplexity",
    "lr": "lr learning_rate lr-AdamW x/lr0 lr/pg0 train/learning_rate lr-SGD",
    "lr/pg1": "lr-AdamW/pg1 lr/pg1 x/lr1",
    "lr/muon": "muon_lr",
    "grad_norm": "grad_norm gnorm train/grad_norm gradient_norm grad_2.0_norm_total optim/grad_norm"
    " grad/total_norm grad_norm/total",
    "layers/fc.weight/grad_norm": "gradients/fc.weight grad/fc.weight grad_2.0_norm/fc.weight"
    " fc.weight/grad_norm fc.weight.grad_norm grad_2.0_norm_fc.weight",
    "layers/encoder/grad_norm": "grad_norm/encoder",
    "layers/fc.weight/weight_norm": "parameters/fc.weight weights/fc.weight weight_norm/fc.weight",
    "weight_norm": "weight_norm param_norm",
    "loss_scale": "loss_scale num_loss_scale scaler/scale amp_scale",
    "time/dt": "dt",
    "time/runtime": "train_runtime",
    "reward/train": "rollout/ep_rew_mean episode_reward",
}


@pytest.mark.parametrize(
    ("given_name", "expected"),
    [(n, canonical_name) for canonical_name, names in CANONICAL.items() for n in names.split()],
)
def test_canonical(given_name: str, expected: str) -> None:
    assert canonical(given_name) == expected


@pytest.mark.parametrize(
    ("given_name", "expected"),
    [
        ("Final Test F1 Score", "f1/test"),
        ("Valid MSE", "mse/val"),
        ("lm loss", "loss/train"),
        ("grad norm", "grad_norm"),
        ("loss scale", "loss_scale"),
        ("learning rate", "lr"),
        ("Train loss", "loss/train"),
    ],
)
def test_names_with_spaces(given_name: str, expected: str) -> None:
    assert canonical(given_name) == expected


@pytest.mark.parametrize(
    "name",
    ["best_val_loss", "val_loss_best", "min_val_loss", "loss_weight", "total_flos", "weight_decay",
     "temperature", "num_tokens"],
)  # fmt: skip
def test_what_is_no_metric_keeps_its_own_name(name: str) -> None:
    assert canonical(name) == f"other/{name}"
    assert not is_measured(canonical(name))


@pytest.mark.parametrize(
    "name", ["tokens/s", "it/s", "samples/sec", "tokens_per_second", "train_samples_per_second",
             "fps", "img/s", "throughput"]
)  # fmt: skip
def test_throughput(name: str) -> None:
    assert kind_of(canonical(name)) == "throughput"


@pytest.mark.parametrize("name", ["s/it", "ms/batch", "step_time", "iter_time", "dt", "elapsed"])
def test_time_is_no_throughput(name: str) -> None:
    assert kind_of(canonical(name)) == "time"


def test_the_speed_of_evaluation_is_kept_apart() -> None:
    assert phase_of(canonical("eval_samples_per_second")) == "val"


@pytest.mark.parametrize(
    "name", ["step", "Step", "global step", "trainer/global_step", "train/global_step", "_step",
             "iteration", "batch_idx", "num_updates", "time/total_timesteps", "episode", "iter"]
)  # fmt: skip
def test_steps(name: str) -> None:
    assert is_step(name)
    assert not is_epoch(name)


@pytest.mark.parametrize("name", ["epoch", "Epoch", "train/epoch", "current_epoch", "Epoch #"])
def test_epochs(name: str) -> None:
    assert is_epoch(name)
    assert not is_step(name)


@pytest.mark.parametrize(
    "name", ["step_time", "batch_size", "steps_per_epoch", "it/s", "epoch_loss", "ep_len", "", "/"]
)
def test_what_only_mentions_steps(name: str) -> None:
    assert not is_step(name)
    assert not is_epoch(name)


def test_the_context_says_what_the_name_leaves_out() -> None:
    assert canonical("loss", "val") == "loss/val"
    assert canonical("train_loss", "val") == "loss/train"


@given(st.text(max_size=60))
def test_every_name_has_a_canonical_one_without_an_at_sign(name: str) -> None:
    result = canonical(name)
    assert result
    assert "@" not in result
    is_step(name)
    is_epoch(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("trainloss", "loss/train"), ("valacc", "accuracy/val"), ("closs", "loss/train/c"),
        ("avr_loss", "loss/train"), ("lossvalue", "loss/train"), ("val-logloss", "loss/val"),
    ],
)  # fmt: skip
def test_words_that_are_written_together(name: str, expected: str) -> None:
    assert canonical(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("objective/kl", "kl/train"), ("objective/rlhf_reward", "reward/train/rlhf"),
        ("objective", "loss/train"), ("train_objective", "loss/train"),
        ("target_val_acc", "accuracy/val/target"), ("target_loss", "other/target_loss"),
    ],
)  # fmt: skip
def test_a_panel_is_no_metric(name: str, expected: str) -> None:
    assert canonical(name) == expected


@pytest.mark.parametrize(
    "name", ["Gradient accumulation steps", "weight decay", "parameters trainable", "top"]
)
def test_phrases_are_neither_layers_nor_metrics(name: str) -> None:
    assert canonical(name) == f"other/{name}"


@pytest.mark.parametrize("name", ["reader_cost", "avg_batch_cost", "data_cost"])
def test_what_work_costs_is_time(name: str) -> None:
    assert kind_of(canonical(name)) == "time"


def test_what_is_paid_for_is_a_reward_and_no_measure() -> None:
    assert canonical("rewards/accuracy_reward") == "reward/train/accuracy"
    assert canonical("rewards/accuracy_reward_func/mean").startswith("reward/train/accuracy")
    assert kind_of(canonical("rewards/accuracies")) == "accuracy"
    assert kind_of(canonical("reward_loss")) == "loss"


def test_losses_that_go_by_the_name_of_their_network() -> None:
    assert canonical("D_A") == "loss/train/d_a"
    assert canonical("cycle_B") == "loss/train/cycle_b"
    assert canonical("G") == "other/G"
