"""One logical step inside of training libraries, and on several ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from traindx.analysis.steps.step_graph import Step, steps_of
from traindx.readers.opening import open_paths

pytest.importorskip("torch")

MEGABYTE = 1 << 20
BEGIN = """
import json, os, torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(96, 6)
y = (x[:, 0] > 0).long()
data = TensorDataset(x, y)
losses = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.norm = nn.LayerNorm(8)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.norm(self.first(x)).relu())


def tell():
    with open(f"losses{os.environ.get('RANK', 0)}.json", "w") as file:
        json.dump([float(loss) for loss in losses], file)
"""
END = "\ntell()\n"
DDP = """
from torch import distributed
distributed.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(Net())
optimizer = torch.optim.Adam(model.parameters())
for inputs, labels in DataLoader(data, batch_size=16):
    loss = functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
distributed.destroy_process_group()
"""
FSDP = """
from torch import distributed
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
distributed.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
model = Net()
for part in (model.first, model.last):
    fully_shard(part, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.Adam(model.parameters())
for inputs, labels in DataLoader(data, batch_size=16):
    loss = functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
distributed.destroy_process_group()
"""
LIGHTNING = """
import lightning


class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, batch_idx):
        inputs, labels = batch
        loss = functional.cross_entropy(self.net(inputs), labels)
        losses.append(loss.detach())
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("accuracy", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, default_root_dir="out",
)
trainer.fit(Lit(), DataLoader(data, batch_size=16), DataLoader(data, batch_size=32))
"""
HUGGING_FACE = """
from transformers import Trainer, TrainingArguments


class Named(Net):
    def forward(self, inputs=None, labels=None):
        logits = super().forward(inputs)
        loss = functional.cross_entropy(logits, labels)
        losses.append(loss.detach())
        return {"loss": loss, "logits": logits}


arguments = TrainingArguments(
    output_dir="out", max_steps=5, per_device_train_batch_size=16, use_cpu=True, report_to=[],
    save_strategy="no", disable_tqdm=True, remove_unused_columns=False,
)
rows = [{"inputs": a, "labels": b} for a, b in data]
Trainer(model=Named(), args=arguments, train_dataset=rows).train()
"""
ACCELERATE = """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters())
model, optimizer, batches = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=16))
for inputs, labels in batches:
    loss = functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    losses.append(loss.item())
"""
PREFIX = """
import sys
sys.path.insert(0, {root!r})
from traindx.capture import recorder
recorder.start("recording", overhead=1.0)
"""


def run(folder: Path, text: str, *, ranks: int) -> dict[str, list[float]]:
    """Run a program; return the losses of each rank."""
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(text)
    python = [sys.executable]
    if ranks > 1:
        python += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [*python, "train.py"]
    ran = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "traindx:" not in ran.stderr
    return {p.name: json.loads(p.read_text()) for p in sorted(folder.glob("losses*.json"))}


def steps(folder: Path, text: str, *, ranks: int = 1) -> list[list[Step]]:
    """Return the steps that each rank captured, of a program that is left alone by it."""
    import traindx

    assert traindx.__file__ is not None
    root = str(Path(traindx.__file__).parents[1])
    prefix = PREFIX.format(root=root)
    alone = run(folder / "alone", BEGIN + text + END, ranks=ranks)
    beside = run(folder / "beside", prefix + BEGIN + text + END, ranks=ranks)
    assert alone == beside and len(alone) == ranks, "the losses are the same to the bit"
    found = []
    for path in sorted((folder / "beside" / "recording").glob("rank*.jsonl")):
        assert all(len(line) <= MEGABYTE for line in path.read_text().splitlines())
        found.append(list(steps_of(open_paths([str(path)]))))
    return found


def assert_whole(step: Step, names: tuple[str, str] = ("batch/0", "batch/1")) -> None:
    """Forward, loss, backward and update are there, and the tensors have their roles."""
    assert len(step.losses) == 1 and step.captured.backward_operations
    assert not step.captured.why
    assert len([*step.named("addmm")]) == 2 and len([*step.named("nll_loss")]) == 1
    assert {n.label.split("net.")[-1] for n in step.nodes if n.is_parameter} == {
        "first.weight", "first.bias", "norm.weight", "norm.bias", "last.weight", "last.bias",
    }  # fmt: skip
    assert [n.facts.role for n in step.inputs] == [names[0]]
    assert [n.facts.role for n in step.labels] == [names[1]]
    assert step.captured.updates
    (relu,) = step.named("relu")
    assert relu.place is not None and "self.norm(self.first(x)).relu()" in relu.place.code
    assert relu.module in ("Net", "net", "Named", "DistributedDataParallel", "FSDPNet"), relu.module
    assert step.outputs


def one(steps: list[Step]) -> Step:
    (step,) = (s for s in steps if s.is_training)
    return step


def test_data_parallel_ranks(tmp_path: Path) -> None:
    for found in steps(tmp_path, DDP, ranks=2):
        assert_whole(one(found))


def test_sharded_ranks(tmp_path: Path) -> None:
    for found in steps(tmp_path, FSDP, ranks=2):
        assert_whole(one(found))


@pytest.mark.skipif(find_spec("lightning") is None, reason="lightning is not installed")
def test_lightning(tmp_path: Path) -> None:
    (found,) = steps(tmp_path, LIGHTNING)
    assert_whole(one(found))
    assert any([*s.named("eq")] for s in found if not s.is_training), "the validation step"


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
def test_hugging_face(tmp_path: Path) -> None:
    (found,) = steps(tmp_path, HUGGING_FACE)
    assert_whole(one(found), ("batch/inputs", "batch/labels"))


@pytest.mark.skipif(find_spec("accelerate") is None, reason="accelerate is not installed")
def test_accelerate(tmp_path: Path) -> None:
    (found,) = steps(tmp_path, ACCELERATE)
    assert_whole(one(found))
