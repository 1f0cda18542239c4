"""Segment the filled wells in small crops of a (simulated) microwell plate."""
import os
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")
SEED = int(os.environ.get("SEED", "0"))
SIZE = 24


def simulate_crop(rng):
    """3x3 wells; each one empty (a rim only) or filled (a disc). Uneven light, noise."""
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    img = np.zeros((SIZE, SIZE))
    mask = np.zeros((SIZE, SIZE))
    off_y, off_x = rng.uniform(-1.5, 1.5, 2)
    for i in range(3):
        for j in range(3):
            dist = np.hypot(yy - (4 + 8 * i + off_y), xx - (4 + 8 * j + off_x))
            img[abs(dist - 3.2) < 0.6] += 0.5
            if rng.random() < 0.45:
                filled = dist < 3.2
                img[filled] += rng.uniform(0.5, 0.9)
                mask[filled] = 1.0
    gy, gx = rng.uniform(-0.4, 0.4, 2)
    img += (gy * (yy - SIZE / 2) + gx * (xx - SIZE / 2)) / SIZE
    img += 0.25 * rng.standard_normal(img.shape)
    return img.astype(np.float32), mask.astype(np.float32)


class WellsDataModule(L.LightningDataModule):
    def __init__(self, batch_size=16):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        rng = np.random.default_rng(5)
        images, masks = zip(*(simulate_crop(rng) for _ in range(640)))
        x = torch.from_numpy(np.stack(images)).unsqueeze(1)
        y = torch.from_numpy(np.stack(masks)).unsqueeze(1)
        self.train_ds = TensorDataset(x[:400], y[:400])
        self.val_ds = TensorDataset(x[400:520], y[400:520])
        self.test_ds = TensorDataset(x[520:], y[520:])

    def train_dataloader(self):
        return DataLoader(self.train_ds, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_ds, batch_size=60)

    def test_dataloader(self):
        return DataLoader(self.test_ds, batch_size=60)


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
    )


class WellSegmenter(L.LightningModule):
    def __init__(self, width=8, lr=5e-3, weight_decay=1e-4):
        super().__init__()
        self.save_hyperparameters()
        self.enc = double_conv(1, width)
        self.mid = double_conv(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec = double_conv(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)
        self._counts = torch.zeros(2)

    def forward(self, x):
        skip = self.enc(x)
        deep = self.mid(F.max_pool2d(skip, 2))
        return self.out(self.dec(torch.cat([skip, self.up(deep)], dim=1)))

    def loss(self, logits, y):
        p = logits.sigmoid()
        dice = 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)
        return F.binary_cross_entropy_with_logits(logits, y) + dice

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True, prog_bar=True)
        return loss

    def _shared_eval(self, batch, stage):
        x, y = batch
        logits = self(x)
        pred = (logits > 0).float()
        self._counts += torch.stack([2 * (pred * y).sum(), pred.sum() + y.sum()])
        self.log(f"{stage}_loss", self.loss(logits, y), prog_bar=True)

    def _log_dice(self, stage):
        self.log(f"{stage}_dice", self._counts[0] / self._counts[1], prog_bar=True)
        self._counts = torch.zeros(2)

    def validation_step(self, batch, batch_idx):
        self._shared_eval(batch, "val")

    def on_validation_epoch_end(self):
        self._log_dice("val")

    def test_step(self, batch, batch_idx):
        self._shared_eval(batch, "test")

    def on_test_epoch_end(self):
        self._log_dice("test")

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.trainer.max_epochs)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "epoch"}}


class PrintMetrics(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        m = trainer.callback_metrics
        print(f"epoch {trainer.current_epoch:02d}  train_loss: {m['train_loss']:.4f}  "
              f"val_loss: {m['val_loss']:.4f}  val_dice: {m['val_dice']:.4f}")


def main():
    L.seed_everything(SEED, workers=True)
    dm = WellsDataModule()
    model = WellSegmenter()
    trainer = L.Trainer(
        max_epochs=6,
        accelerator="cpu",
        devices=1,
        deterministic=True,
        gradient_clip_val=1.0,
        logger=CSVLogger("logs", name="wells", version=0),
        callbacks=[PrintMetrics(), ModelCheckpoint(dirpath="checkpoints", monitor="val_dice", mode="max")],
        log_every_n_steps=10,
        num_sanity_val_steps=0,
        enable_progress_bar=False,
    )
    trainer.fit(model, datamodule=dm)
    result = trainer.test(model, datamodule=dm, verbose=False)[0]
    print(f"test_dice: {result['test_dice']:.4f} (test_loss {result['test_loss']:.4f})")


if __name__ == "__main__":
    main()
