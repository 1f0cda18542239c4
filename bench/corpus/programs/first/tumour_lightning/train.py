import argparse
import os
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, ModelCheckpoint, TQDMProgressBar
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", message=".*does not have many workers.*")


class TumourData(L.LightningDataModule):
    def __init__(self, batch_size=32, seed=0):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        x, y = load_breast_cancer(return_X_y=True)
        x_train, x_val, y_train, y_val = train_test_split(
            x, y, test_size=0.25, random_state=self.hparams.seed, stratify=y
        )
        scaler = StandardScaler().fit(x_train)
        self.train_set = self._tensors(scaler.transform(x_train), y_train)
        self.val_set = self._tensors(scaler.transform(x_val), y_val)

    @staticmethod
    def _tensors(x, y):
        return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.hparams.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=64)


class TumourClassifier(L.LightningModule):
    def __init__(self, hidden=32, lr=3e-3, weight_decay=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.backbone = nn.Sequential(
            nn.Linear(30, hidden),
            nn.LayerNorm(hidden),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.head(self.backbone(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        accuracy = (logits.argmax(dim=1) == y).float().mean()
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val_acc", accuracy, prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(
            self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay
        )
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
            optimizer, T_max=self.trainer.estimated_stepping_batches
        )
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "interval": "step"},
        }


class PrintMetrics(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        metrics = {k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()}
        print(f"epoch {trainer.current_epoch}: {metrics}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "0")))
    args = parser.parse_args()

    L.seed_everything(args.seed, workers=True)
    datamodule = TumourData(seed=args.seed)
    model = TumourClassifier()
    trainer = L.Trainer(
        max_epochs=args.max_epochs,
        accelerator="cpu",
        devices=1,
        gradient_clip_val=1.0,
        logger=False,
        log_every_n_steps=5,
        num_sanity_val_steps=0,
        callbacks=[
            TQDMProgressBar(refresh_rate=7),
            PrintMetrics(),
            ModelCheckpoint(dirpath="checkpoints", filename="best", monitor="val_loss"),
        ],
    )
    trainer.fit(model, datamodule=datamodule)


if __name__ == "__main__":
    main()
