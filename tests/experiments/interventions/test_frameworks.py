"""Changes reach programs that leave their loop to a framework."""

from __future__ import annotations

from pathlib import Path

from changing import change

LIGHTNING = """
import json, logging, warnings
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
        self.seen, self.rates = [], []

    def training_step(self, batch, index):
        x, y = batch
        self.seen.append(x[0, 0].item())
        return nn.functional.cross_entropy(self.net(x).softmax(1), y)

    def on_train_batch_end(self, *args):
        self.rates.append(self.optimizers().param_groups[0]["lr"])

    def validation_step(self, batch, index):
        self.net(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

torch.manual_seed(0)
x = torch.arange(32.0)[:, None].expand(32, 4) * 10
y = (x[:, 0] > 150).long()
net = Net()
trainer = lightning.Trainer(max_epochs=2, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False,
                            accelerator="cpu")
trainer.fit(net, DataLoader(TensorDataset(x, y), batch_size=4, num_workers=1),
            DataLoader(TensorDataset(x, y), batch_size=4))
print(json.dumps({"seen": net.seen, "rates": sorted(set(net.rates))}))
"""

TRAINER = """
import json, warnings
warnings.filterwarnings("ignore")
import torch
from torch import nn
from transformers import Trainer, TrainingArguments

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))

    def forward(self, x, labels=None):
        out = self.net(x)
        return {"loss": nn.functional.cross_entropy(out.softmax(-1), labels), "logits": out}

torch.manual_seed(0)
data = [{"x": torch.randn(4), "labels": torch.tensor(n % 2)} for n in range(64)]
arguments = TrainingArguments(output_dir="out", max_steps=500, per_device_train_batch_size=4,
                              learning_rate=0.1, use_cpu=True, report_to=[], save_strategy="no",
                              disable_tqdm=True, logging_strategy="no", max_grad_norm=0.0)
Trainer(Net(), arguments, train_dataset=data).train()
"""

ACCELERATE = """
import json
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
data = TensorDataset(torch.arange(32.0)[:, None], torch.arange(32.0))
model, loader = nn.Linear(1, 1), DataLoader(data, batch_size=4)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
seen, moved = [], []
for x, y in loader:
    with accelerator.accumulate(model):
        seen += x[:, 0].long().tolist()
        before = model.weight.item()
        accelerator.backward(nn.functional.mse_loss(model(x), y))
        optimizer.step()
        moved.append(abs(before - model.weight.item()))
        optimizer.zero_grad()
print(json.dumps({"seen": seen, "moved": moved}))
"""

ASKED = [
    ("learning-rate", {"factor": 0.01}),
    ("gradient-clipping", {"max_norm": 0.01}),
    ("zero-grad", {}),
    ("raw-loss-input", {}),
    ("target-shape", {}),
    ("shuffle", {}),
    ("modes", {}),
    ("normalise-inputs", {}),
    ("no-workers", {}),
    ("all-parameters", {}),
]


def test_lightning(tmp_path: Path) -> None:
    outcome = change(tmp_path, LIGHTNING, ASKED)
    assert outcome.code == 0, outcome.errors
    told = outcome.told
    assert told["rates"] == [0.1]
    assert told["seen"][:8] != [n * 40.0 for n in range(8)]
    assert outcome.applied("learning-rate") == 16
    assert outcome.applied("gradient-clipping") >= 8
    assert outcome.applied("raw-loss-input") == 16
    assert outcome.applied("shuffle") == 1
    assert outcome.applied("normalise-inputs") > 16
    assert outcome.applied("no-workers") == 1
    for name in ("zero-grad", "modes", "all-parameters", "target-shape"):
        assert outcome.applied(name) == 0, name


def test_the_trainer_of_transformers(tmp_path: Path) -> None:
    outcome = change(tmp_path, TRAINER, [*ASKED, ("stop", {"steps": 5})])
    assert outcome.code == 0, outcome.errors
    assert outcome.applied("learning-rate") == 5
    assert outcome.applied("gradient-clipping") >= 3
    assert outcome.applied("raw-loss-input") == 5
    assert outcome.applied("stop") == 1
    for name in ("zero-grad", "modes", "all-parameters", "target-shape", "shuffle"):
        assert outcome.applied(name) == 0, name


def test_accelerate(tmp_path: Path) -> None:
    outcome = change(tmp_path, ACCELERATE, ASKED)
    assert outcome.code == 0, outcome.errors
    told = outcome.told
    assert sorted(told["seen"]) == list(range(32))
    assert told["seen"] != list(range(32))
    assert [m > 0 for m in told["moved"]] == [False, True] * 4
    assert max(told["moved"]) < 2e-4  # rate and norm both hundredfold smaller
    assert outcome.applied("learning-rate") == 4
    assert outcome.applied("gradient-clipping") == 4
    assert outcome.applied("target-shape") == 8
    assert outcome.applied("zero-grad") == 0
