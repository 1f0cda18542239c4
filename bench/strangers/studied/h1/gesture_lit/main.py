import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def make_gestures(n, seed, steps=32):
    """Accelerometer-like traces of 4 gestures: swipe, shake, circle, still."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, steps)
    labels = rng.integers(0, 4, n)
    out = np.zeros((n, 3, steps), dtype=np.float32)
    for i, k in enumerate(labels):
        f, ph = rng.uniform(1, 3), rng.uniform(0, 2 * np.pi)
        if k == 0:
            out[i, 0] = np.exp(-((t - rng.uniform(0.3, 0.7)) ** 2) / 0.01)
        elif k == 1:
            out[i, 1] = np.sin(2 * np.pi * 3 * f * t + ph)
        elif k == 2:
            out[i, 0], out[i, 1] = np.sin(2 * np.pi * f * t + ph), np.cos(2 * np.pi * f * t + ph)
    out += rng.normal(0, 0.7, out.shape)
    return TensorDataset(torch.from_numpy(out), torch.from_numpy(labels))


class GestureData(L.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.train_set = make_gestures(800, 0)
        self.val_set = make_gestures(300, 1)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=150)


class GestureNet(L.LightningModule):
    def __init__(self, max_lr=0.05, n_classes=4):
        super().__init__()
        self.save_hyperparameters()
        self.body = nn.Sequential(
            nn.Conv1d(3, 16, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.head = nn.Linear(32, n_classes)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: loss {m['train_loss']:.4f} val_acc {m['val_acc']:.3f} "
              f"lr {self.optimizers().param_groups[0]['lr']:.2e}")

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=self.hparams.max_lr, momentum=0.9)
        cycle = torch.optim.lr_scheduler.OneCycleLR(
            opt, max_lr=self.hparams.max_lr, total_steps=self.trainer.estimated_stepping_batches)
        return {"optimizer": opt, "lr_scheduler": cycle, "interval": "step", "frequency": 1}


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(GestureNet(), GestureData())
