"""Lightning modules with a fault each; the first argument chooses."""

import logging
import sys
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 64), nn.ReLU())
        self.head = nn.Linear(64, 4)
        self.losses = []

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class WithSoftmax(Classifier):
    def forward(self, x):
        return torch.softmax(super().forward(x), dim=-1)


class OnlyHead(Classifier):
    def configure_optimizers(self):
        return torch.optim.Adam(self.head.parameters(), lr=1e-3)


class ManualWithoutStep(Classifier):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        loss = super().training_step(batch, batch_idx)
        self.manual_backward(loss)


class FarTooFast(Classifier):
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=30.0, momentum=0.9)


FAULTS = {
    "softmax": WithSoftmax,
    "only-head": OnlyHead,
    "no-step": ManualWithoutStep,
    "lr": FarTooFast,
}


def main():
    L.seed_everything(7, verbose=False)
    x = torch.randn(1000, 20)
    y = (x @ torch.randn(20, 4)).argmax(1)
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = FAULTS[sys.argv[1]]()
    trainer = L.Trainer(
        max_epochs=8,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    for step, loss in enumerate(model.losses[::10]):
        print(f"step {step * 10} loss {loss:.6f}")


if __name__ == "__main__":
    main()
