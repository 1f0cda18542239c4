import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", ".*does not have many workers.*")


def vibration(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (n,), generator=g)
    t = torch.linspace(0, 1, 128)
    freq = torch.tensor([6.0, 11.0, 17.0])[y].unsqueeze(1) + torch.randn(n, 1, generator=g)
    x = torch.sin(2 * torch.pi * freq * t) + 0.6 * torch.randn(n, 128, generator=g)
    return TensorDataset(x.unsqueeze(1), y)


class VibrationData(L.LightningDataModule):
    def setup(self, stage=None):
        self.train_set, self.val_set = vibration(640, 0), vibration(200, 1)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=100)


class FaultClassifier(L.LightningModule):
    def __init__(self, max_lr: float = 1e-2, width: int = 24):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 9, stride=2, padding=4), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 9, stride=2, padding=4), nn.BatchNorm1d(width), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, 3),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log_dict({
            "val_loss": F.cross_entropy(logits, y),
            "val_acc": (logits.argmax(1) == y).float().mean(),
        }, batch_size=len(y))

    def on_train_epoch_end(self):
        m = {k: round(v.item(), 4) for k, v in self.trainer.callback_metrics.items()}
        print(self.current_epoch, f"lr {self.optimizers().param_groups[0]['lr']:.2e}", m)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.max_lr)
        sched = torch.optim.lr_scheduler.OneCycleLR(
            opt, max_lr=self.hparams.max_lr, total_steps=self.trainer.estimated_stepping_batches, pct_start=0.3
        )
        return [opt], [sched]


if __name__ == "__main__":
    L.seed_everything(19, workers=True, verbose=False)
    trainer = L.Trainer(
        max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )
    trainer.fit(FaultClassifier(), datamodule=VibrationData())
