"""The same recording from inside the code: a block, and the callbacks of two trainers."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import traindx
from traindx.model.findings import Status

LIGHTNING = """
import sys
import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from traindx.callbacks.lightning import TraindxCallback

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(-1))
    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x[:, :3].argmax(1)
callback = TraindxCallback(sys.argv[1])
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False,
             enable_model_summary=False, accelerator="cpu")
trainer = pl.Trainer(max_epochs=6, callbacks=[callback], **quiet)
trainer.fit(Net(), DataLoader(TensorDataset(x, y), batch_size=32))
print([c.cause for c in callback.watch.diagnose().root_causes])
"""

TRANSFORMERS = """
import sys
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from traindx.callbacks.transformers import TraindxCallback

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=16, n_embd=16, n_layer=1, n_head=2))
for parameter in model.parameters():
    parameter.requires_grad = False
model.transformer.ln_f.bias.requires_grad = True
rows = [{"input_ids": torch.arange(8) % 20, "labels": torch.arange(8) % 20} for _ in range(64)]
callback = TraindxCallback(sys.argv[1])
arguments = TrainingArguments(sys.argv[1] + "-hf", max_steps=30, per_device_train_batch_size=8,
                              use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True)
Trainer(model, arguments, train_dataset=rows, callbacks=[callback]).train()
print([c.cause for c in callback.watch.diagnose().root_causes])
"""


def train(net: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 60) -> None:
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))
    y = x[:, :3].argmax(1)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()


def make() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    return net, torch.optim.Adam(net.parameters(), 1e-2)


def test_a_block_is_recorded_and_leaves_nothing_behind(tmp_path: Path) -> None:
    net, optimizer = make()
    backward = torch.autograd.backward
    with traindx.watch(net, optimizer, output=tmp_path / "run") as seen:
        train(net, optimizer)
        assert torch.autograd.backward is not backward
        assert seen.diagnose().artifacts  # while it grows
    assert torch.autograd.backward is backward
    assert not net._forward_pre_hooks
    assert seen.diagnose().status is Status.HEALTHY
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    assert about["is_running"] is False


def test_code_that_takes_no_part_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "used_part.py").write_text("import used_deeper\n")
    (tmp_path / "used_deeper.py").write_text("SIZE = 16\n")
    (tmp_path / "other_training.py").write_text("def train():\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("used_part", "other_training"):
        module = importlib.import_module(name)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(globals(), "part", sys.modules["used_part"])
    with traindx.watch(*make(), output=tmp_path / "run"):
        pass
    kept = {Path(p).name for p in (tmp_path / "run" / "sources").rglob("*.py")}
    assert {Path(__file__).name} < {name[-len(Path(__file__).name) :] for name in kept}
    assert [any(part in name for name in kept) for part in ("used_part", "used_deeper")] == [
        True
    ] * 2
    assert not any("other_training" in name for name in kept)


def test_an_exception_passes_through_and_is_kept(tmp_path: Path) -> None:
    net, optimizer = make()
    with (
        pytest.raises(RuntimeError, match="cannot be multiplied"),
        traindx.watch(output=tmp_path / "run") as seen,
    ):
        train(net, optimizer, steps=3)
        net(torch.randn(4, 5))
    causes = [h.cause for h in seen.diagnose().root_causes]
    assert causes[:1] == ["shape-mismatch"]


def test_a_fault_inside_the_block_is_found(tmp_path: Path) -> None:
    net, optimizer = make()
    optimizer.step = lambda closure=None: None  # type: ignore[assignment,method-assign]
    with traindx.watch(net, optimizer, output=tmp_path / "run") as seen:
        train(net, optimizer)
    assert [h.cause for h in seen.diagnose().root_causes][:1] == ["missing-optimizer-step"]


def test_nothing_was_recorded_yet() -> None:
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        traindx.watch().diagnose()


def run(script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "run")],
        capture_output=True, text=True, env=environment, cwd=tmp_path, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("script", "cause"),
    [(LIGHTNING, "softmax-before-cross-entropy"), (TRANSFORMERS, "frozen-parameters")],
    ids=["lightning", "transformers"],
)
def test_a_callback_makes_the_same_recording(script: str, cause: str, tmp_path: Path) -> None:
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert cause in done.stdout.splitlines()[-1], done.stdout[-500:] + done.stderr[-500:]
