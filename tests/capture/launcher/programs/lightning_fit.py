"""A Lightning module with validation and a checkpoint-free trainer."""

import logging
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
        self.net = nn.Sequential(
            nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4)
        )
        self.losses = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", nn.functional.cross_entropy(logits, y))
        self.log("val_accuracy", (logits.argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        for name, value in sorted(self.trainer.callback_metrics.items()):
            print(f"epoch {self.current_epoch} {name} {value.item()!r}")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=3e-3)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
        return [optimizer], [scheduler]


def main():
    L.seed_everything(7, verbose=False)
    x = torch.randn(1200, 20)
    y = (x @ torch.randn(20, 4)).argmax(1)
    train_loader = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=50, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=100)
    model = Classifier()
    trainer = L.Trainer(
        max_epochs=6,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
    )
    trainer.fit(model, train_loader, val_loader)
    for step, loss in enumerate(model.losses[::10]):
        print(f"step {step * 10} loss {loss!r}")


if __name__ == "__main__":
    main()
