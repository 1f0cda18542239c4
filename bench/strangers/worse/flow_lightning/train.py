"""Predict the drag of a simulated profile from its shape parameters (Lightning)."""
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 0


def profiles(n=3000, d=8):
    g = torch.Generator().manual_seed(77)
    x = torch.rand(n, d, generator=g) * 2 - 1
    y = (torch.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.7 * torch.cos(2 * x[:, 3] + x[:, 4])
         - 0.5 * x[:, 5] ** 2 + 0.05 * torch.randn(n, generator=g))
    y = (y - y.mean()) / y.std()
    return TensorDataset(x[:2400], y[:2400, None]), TensorDataset(x[2400:], y[2400:, None])


class DragModel(L.LightningModule):
    def __init__(self, lr=3e-3):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(),
                                 nn.Linear(64, 1))
        self.losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self.net(x), y))

    def on_train_epoch_end(self):
        train = sum(self.losses) / len(self.losses)
        self.losses.clear()
        val = self.trainer.callback_metrics["val_loss"].item()
        print(f"epoch {self.current_epoch}: train_loss {train:.4f} val_loss {val:.4f}", flush=True)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.lr)
        sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.97)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


def main():
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(SEED, verbose=False)
    train, val = profiles()
    trainer = L.Trainer(max_epochs=20, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False,
                        num_sanity_val_steps=0)
    trainer.fit(DragModel(), DataLoader(train, batch_size=64, shuffle=True),
                DataLoader(val, batch_size=600))


if __name__ == "__main__":
    main()
