import logging
import math
import warnings

import lightning.pytorch as pl
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

COLUMNS = ["temp", "dewpoint", "wind_u", "wind_v", "altitude", "hour_sin", "hour_cos", "pressure"]


def station_table(n=1600, seed=3):
    """One row per observation; SI units as delivered by the weather service."""
    r = np.random.default_rng(seed)
    temp = r.normal(284, 7, n)
    dew = temp - r.gamma(2, 2, n)
    u, v = r.normal(0, 5, n), r.normal(0, 5, n)
    alt = r.uniform(0, 120, n)
    hour = r.uniform(0, 24, n)
    hs, hc = np.sin(hour * math.pi / 12), np.cos(hour * math.pi / 12)
    pressure = 101_325 - 12 * alt - 35 * (temp - 284) + 30 * u - 20 * v + 60 * hs + r.normal(0, 60, n)
    return np.column_stack([temp, dew, u, v, alt, hs, hc, pressure]).astype(np.float32)


class StationData(pl.LightningDataModule):
    def __init__(self, batch_size=64):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        table = station_table()
        cut = int(0.8 * len(table))
        inputs = table[:, :-1]
        mean, std = inputs[:cut].mean(0), inputs[:cut].std(0)
        inputs -= mean
        inputs /= std
        x, y = torch.from_numpy(table[:, :-1].copy()), torch.from_numpy(table[:, -1].copy())
        self.fit_set = TensorDataset(x[:cut], y[:cut])
        self.val_set = TensorDataset(x[cut:], y[cut:])

    def train_dataloader(self):
        return DataLoader(self.fit_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=320)


class PressureNet(pl.LightningModule):
    def __init__(self, hidden=64, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        n = len(COLUMNS) - 1
        self.net = nn.Sequential(nn.Linear(n, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x)[:, 0]

    def training_step(self, batch, batch_idx):
        loss = F.smooth_l1_loss(self(batch[0]), batch[1])
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        pred = self(batch[0])
        ss_res = ((pred - batch[1]) ** 2).sum()
        ss_tot = ((batch[1] - batch[1].mean()) ** 2).sum()
        self.log_dict({"val_mae": F.l1_loss(pred, batch[1]), "val_r2": 1 - ss_res / ss_tot})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


class PrintScores(pl.Callback):
    def on_train_epoch_end(self, trainer, module):
        scores = {k: round(float(v), 3) for k, v in trainer.callback_metrics.items()}
        print("epoch", trainer.current_epoch, scores)


if __name__ == "__main__":
    pl.seed_everything(0, verbose=False)
    trainer = pl.Trainer(max_epochs=10, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                         callbacks=[PrintScores()])
    trainer.fit(PressureNet(), datamodule=StationData())
