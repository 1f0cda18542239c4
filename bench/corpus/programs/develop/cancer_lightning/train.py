import os
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore", ".*does not have many workers.*")


class CellData(L.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        cells = load_breast_cancer()
        x = torch.tensor(cells.data, dtype=torch.float32)
        x = (x - x.mean(0)) / x.std(0)
        y = torch.tensor(cells.target, dtype=torch.long)
        self.train_set, self.val_set = random_split(TensorDataset(x, y), [420, len(x) - 420])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=len(self.val_set))


class Classifier(L.LightningModule):
    def __init__(self, hidden=32, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(30, hidden),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden, 2),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        acc = (logits.argmax(1) == y).float().mean()
        self.log_dict({"val_loss": loss, "val_acc": acc})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


class Printer(L.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        m = {k: float(v) for k, v in trainer.callback_metrics.items()}
        print(f"Epoch {trainer.current_epoch}: " + ", ".join(f"{k}={m[k]:.4f}" for k in sorted(m)))


def main():
    L.seed_everything(int(os.environ.get("SEED", "0")))
    trainer = L.Trainer(
        max_epochs=12,
        accelerator="cpu",
        callbacks=[Printer()],
        enable_progress_bar=False,
        enable_checkpointing=False,
        logger=False,
        log_every_n_steps=5,
        gradient_clip_val=2.0,
    )
    trainer.fit(Classifier(), datamodule=CellData())


if __name__ == "__main__":
    main()
