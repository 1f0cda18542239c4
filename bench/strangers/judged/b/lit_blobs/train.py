"""Digits with Lightning; augmentation runs batched on the accelerator instead of in the workers."""
import logging
import warnings

import lightning as L
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class BatchJitter(nn.Module):
    """Random shift, cut-out and contrast, drawn per sample."""

    def __init__(self, shift=1, hole=3, contrast=0.3):
        super().__init__()
        self.shift, self.hole, self.contrast = shift, hole, contrast

    @torch.no_grad()
    def forward(self, x):
        b, _, h, w = x.shape
        dy, dx = torch.randint(-self.shift, self.shift + 1, (2, b), device=x.device)
        rows = (torch.arange(h, device=x.device)[None] + dy[:, None]).clamp(0, h - 1)
        cols = (torch.arange(w, device=x.device)[None] + dx[:, None]).clamp(0, w - 1)
        x = x[torch.arange(b, device=x.device)[:, None, None], 0, rows[:, :, None], cols[:, None, :]][:, None]
        top, left = torch.randint(0, h - self.hole, (2, b), device=x.device)
        yy, xx = torch.arange(h, device=x.device), torch.arange(w, device=x.device)
        inside = (((yy >= top[:, None]) & (yy < top[:, None] + self.hole))[:, :, None]
                  & ((xx >= left[:, None]) & (xx < left[:, None] + self.hole))[:, None, :])
        x = x.masked_fill(inside[:, None], 0.0)
        return x * (1 + self.contrast * (2 * torch.rand(b, 1, 1, 1, device=x.device) - 1))


class DigitsData(L.LightningDataModule):
    def __init__(self, batch=64, seed=0):
        super().__init__()
        self.batch, self.seed = batch, seed

    def setup(self, stage=None):
        d = load_digits()
        imgs = torch.tensor(d.images, dtype=torch.float32)[:, None] / 16
        y = torch.tensor(d.target)
        a, b = train_test_split(range(len(y)), test_size=0.25, random_state=self.seed, stratify=d.target)
        self.fit_set, self.val_set = TensorDataset(imgs[a], y[a]), TensorDataset(imgs[b], y[b])

    def train_dataloader(self):
        return DataLoader(self.fit_set, self.batch, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, 150)


class DigitsModule(L.LightningModule):
    def __init__(self, lr=3e-3, augment=True):
        super().__init__()
        self.save_hyperparameters()
        self.jitter = BatchJitter()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(),
            nn.Dropout(0.2), nn.Linear(32 * 16, 10))

    def on_after_batch_transfer(self, batch, dataloader_idx):
        x, y = batch
        if self.hparams.augment:
            x = self.jitter(x)
        return x, y

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        z = self(x)
        self.log_dict({"val_loss": F.cross_entropy(z, y), "val_acc": (z.argmax(1) == y).float().mean()},
                      batch_size=len(y))

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: " + " ".join(f"{k}={v:.4f}" for k, v in m.items() if "val" in k))

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        sch = torch.optim.lr_scheduler.OneCycleLR(opt, self.hparams.lr,
                                                  total_steps=self.trainer.estimated_stepping_batches)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sch, "interval": "step"}}


if __name__ == "__main__":
    L.seed_everything(42, verbose=False)
    trainer = L.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(DigitsModule(), datamodule=DigitsData())
