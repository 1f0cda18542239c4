"""Folders as DVCLive, Lightning, Hugging Face and W&B leave them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from traindx import open_run

NAMESPACE = """!!python/object:argparse.Namespace
batch_size: 32
lr: 0.001
optimizer: !!python/object/apply:os.system ["touch {mark}"]
path: !!python/object/apply:pathlib.PosixPath [data, train]
"""


def test_dvclive(tmp_path: Path) -> None:
    for name, scale in (("train/loss", 1.0), ("eval/loss", 2.0), ("lr", 0.1)):
        file = tmp_path / "dvclive" / "plots" / "metrics" / f"{name}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = "".join(f"{i}\t{scale / (i + 1)}\n" for i in range(10))
        file.write_text(f"step\t{Path(name).name}\n{rows}")
    last = {"train": {"loss": 0.1}, "eval": {"loss": 0.2}, "lr": 0.01, "step": 9}
    (tmp_path / "dvclive" / "metrics.json").write_text(json.dumps(last))
    (tmp_path / "dvclive" / "params.yaml").write_text("lr: 0.1\nbatch_size: 8\n")
    run = open_run(tmp_path)
    assert set(run.series) == {"loss/train", "loss/val", "lr"}
    assert run.series["loss/val"].values[1] == 1.0
    assert run.config.number("lr") == 0.1


def test_lightning_hparams_with_python_tags(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    (tmp_path / "metrics.csv").write_text("epoch,step,train_loss\n0,9,1.5\n0,19,1.2\n1,29,1.0\n")
    (tmp_path / "hparams.yaml").write_text(NAMESPACE.format(mark=mark))
    run = open_run(tmp_path)
    assert not mark.exists()
    assert run.config.number("lr") == 0.001 and run.config.number("batch_size") == 32
    assert run.series["loss/train"].steps.tolist() == [9, 19, 29]


def test_the_state_of_a_trainer(tmp_path: Path) -> None:
    state = {
        "best_metric": 0.4,
        "best_model_checkpoint": "out/checkpoint-20",
        "epoch": 3.0,
        "global_step": 30,
        "log_history": [
            {"epoch": 1.0, "loss": 0.9, "learning_rate": 1e-4, "step": 10},
            {"epoch": 1.0, "eval_loss": 0.8, "eval": {"f1": 0.5}, "step": 10},
            {"epoch": 2.0, "loss": float("nan"), "grad_norm": float("inf"), "step": 20},
            {"epoch": 2.0, "eval_loss": 0.4, "eval": {"f1": 0.6}, "step": 20},
            {"epoch": 3.0, "train_runtime": 9.0, "train_loss": 0.7, "total_flos": 1e9, "step": 30},
        ],
        "stateful_callbacks": {"EarlyStopping": {"args": {"patience": 3}}},
    }
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps(state))
    run = open_run(path)
    assert np.isnan(run.series["loss/train"].values[1])
    assert run.series["loss/val"].values.tolist() == [0.8, 0.4]
    assert run.series["f1/val"].values.tolist() == [0.5, 0.6]
    assert np.isinf(run.series["grad_norm"].values[0])
    assert not {"best_metric", "epoch"} & {s.key for s in run.config.settings}
    assert [e.kind for e in run.events] == ["summary"]


def test_a_history_that_counts_epochs_alone(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    history = [{"epoch": float(i), "loss": 1.0 / i} for i in range(1, 6)]
    path.write_text(json.dumps({"log_history": history}))
    loss = open_run(path).series["loss/train"]
    assert loss.axis == "epoch" and loss.steps.tolist() == [1, 2, 3, 4, 5]


def test_results_are_no_settings(tmp_path: Path) -> None:
    (tmp_path / "all_results.json").write_text(
        '{"epoch": 3.0, "eval_loss": 0.5, "train_loss": 0.3, "train_runtime": 10.0}'
    )
    (tmp_path / "eval_results.json").write_text('{"epoch": 3.0, "eval_loss": NaN}')
    run = open_run(tmp_path)
    assert run.config.settings == ()
    assert np.isnan(run.series["loss/val"].values[0])
    assert any("train_loss 0.3" in e.text for e in run.events if e.kind == "summary")


def test_training_args_are_refused_safely(tmp_path: Path) -> None:
    import pickle

    mark = tmp_path / "executed"

    class Payload:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            import os

            return os.system, (f"touch {mark}",)

    import torch

    torch.save(Payload(), tmp_path / "training_args.bin", pickle_module=pickle)
    (tmp_path / "train.log").write_text("step 1 loss 0.5\nstep 2 loss 0.4\n")
    run = open_run(tmp_path)
    assert not mark.exists()
    told = [e.text for e in run.events] + [w for a in run.artifacts for w in a.warnings]
    assert any("system" in text or "training_args" in text for text in told)


def test_the_files_of_a_wandb_run(tmp_path: Path) -> None:
    files = tmp_path / "run-20240101_000000-abc" / "files"
    files.mkdir(parents=True)
    (files / "config.yaml").write_text(
        "_wandb:\n  value:\n    cli_version: 0.31\nlr:\n  desc: null\n  value: 0.1\n"
        "model:\n  value:\n    layers: 3\nbatch_size:\n    value: 8\n"
    )
    summary = {"_step": 29, "train/loss": 0.06, "_timestamp": 1.7e9, "_wandb": {"runtime": 3}}
    (files / "wandb-summary.json").write_text(json.dumps(summary))
    (files / "output.log").write_text(
        "".join(f"step {i} loss {3 - i / 10:.3f}\n" for i in range(9))
    )
    run = open_run(tmp_path)
    settings = {s.key: s.value for s in run.config.settings}
    assert settings == {"lr": 0.1, "model.layers": 3, "batch_size": 8}
    assert len(run.series["loss/train"]) == 9
