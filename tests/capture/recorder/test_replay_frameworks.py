"""A bad step inside a framework's loop is replayed by the framework's own means."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("torch")

DRIVER = """
import json, pathlib, sys
sys.path.insert(0, {here!r})
from riding import Ride
ride = Ride()
ride.run(pathlib.Path("train.py"), pathlib.Path("text.py").read_text())
print("TOLD " + json.dumps(ride.told))
"""

HUGGING_FACE = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Model(GPT2LMHeadModel):
    def forward(self, input_ids=None, labels=None, **kwargs):
        out = super().forward(input_ids=input_ids, labels=labels)
        out.loss = out.loss + (out.logits * 0).pow(2).sum().sqrt()
        return out


model = Model(GPT2Config(vocab_size=50, n_positions=16, n_embd=8, n_layer=1, n_head=2))
data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(8)]
arguments = TrainingArguments(
    output_dir="out", max_steps=1, per_device_train_batch_size=4, use_cpu=True, report_to=[],
    save_strategy="no", max_grad_norm=0.0,
)
Trainer(model=model, args=arguments, train_dataset=data).train()
"""

LIGHTNING = """
import lightning
import torch
from torch import nn


class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout())
        self.steps_seen = 0

    def training_step(self, batch, batch_idx):
        self.steps_seen += 1
        out = self.net(batch[0])
        loss = torch.log(out.mean() * 0)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


data = torch.utils.data.TensorDataset(torch.randn(8, 4))
lit = Lit()
trainer = lightning.Trainer(
    max_steps=1, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, default_root_dir="out",
)
trainer.fit(lit, torch.utils.data.DataLoader(data, batch_size=4))
assert lit.steps_seen == 1
"""


def ride(folder, text):
    (folder / "text.py").write_text(text)
    driver = DRIVER.format(here=str(Path(__file__).parent))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", driver]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    line = next((row for row in done.stdout.splitlines() if row.startswith("TOLD ")), None)
    assert line is not None, done.stderr
    return json.loads(line[5:])


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
def test_hugging_face(tmp_path):
    told = ride(tmp_path, HUGGING_FACE)
    assert (told["phase"], told["op"], told["is_exact"]) == ("backward", "sqrt", True)
    assert told["module_type"] == "Model"
    assert told["parameter"] == "transformer.wte.weight"
    assert told["place"]["code"] == "out.loss = out.loss + (out.logits * 0).pow(2).sum().sqrt()"


@pytest.mark.skipif(find_spec("lightning") is None, reason="lightning is not installed")
def test_lightning(tmp_path):
    told = ride(tmp_path, LIGHTNING)
    assert (told["phase"], told["op"], told["is_exact"]) == ("loss", "log", True)
    assert told["place"]["code"] == "loss = torch.log(out.mean() * 0)"
