import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset, random_split
from torchmetrics.classification import MulticlassAccuracy


class ResidualMLP(nn.Module):
    def __init__(self, d_in, d=128, depth=3, n_out=6, p=0.2):
        super().__init__()
        self.stem = nn.Linear(d_in, d)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.BatchNorm1d(d), nn.ReLU(), nn.Linear(d, d), nn.Dropout(p)) for _ in range(depth))
        self.out = nn.Linear(d, n_out)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = x + b(x)
        return self.out(x)


class CellTypeClassifier(pl.LightningModule):
    def __init__(self, d_in=200, n_types=6, max_lr=3e-3, weight_decay=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = ResidualMLP(d_in, n_out=n_types)
        self.val_acc = MulticlassAccuracy(n_types, average="micro")

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self(x), y, label_smoothing=0.05)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log("val/loss", F.cross_entropy(logits, y))
        self.log("val/acc", self.val_acc)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.max_lr,
                                      weight_decay=self.hparams.weight_decay)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            max_lr=self.hparams.max_lr,
            total_steps=self.trainer.estimated_stepping_batches,
            pct_start=0.25,
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val/loss"}}


class GeneData(pl.LightningDataModule):
    def __init__(self, batch_size=64):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        X, y = make_classification(3000, 200, n_informative=30, n_classes=6, class_sep=1.5, random_state=0)
        X = torch.log1p(torch.tensor(X, dtype=torch.float32).abs()) * torch.tensor(X, dtype=torch.float32).sign()
        ds = TensorDataset(X, torch.tensor(y))
        self.train, self.val = random_split(ds, [2500, 500], torch.Generator().manual_seed(0))

    def train_dataloader(self):
        return DataLoader(self.train, self.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val, 500)


if __name__ == "__main__":
    pl.seed_everything(0)
    trainer = pl.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)
    model, data = CellTypeClassifier(), GeneData()
    trainer.fit(model, data)
    print(trainer.callback_metrics)
    print("lr now", trainer.optimizers[0].param_groups[0]["lr"])
