import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


class ChurnData(L.LightningDataModule):
    def __init__(self, batch_size=128):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        X, y = make_classification(4000, 24, n_informative=10, weights=[0.8], random_state=3)
        X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.25, stratify=y, random_state=3)
        sc = StandardScaler().fit(X_tr)
        self.train_ds = self._ds(sc.transform(X_tr), y_tr)
        self.val_ds = self._ds(sc.transform(X_va), y_va)

    @staticmethod
    def _ds(X, y):
        X = torch.tensor(np.asarray(X), dtype=torch.float32)
        y = torch.tensor(y, dtype=torch.float32).unsqueeze(1)
        return TensorDataset(X, y)

    def train_dataloader(self):
        return DataLoader(self.train_ds, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_ds, 512)


class ChurnModel(L.LightningModule):
    def __init__(self, n_features=24, hidden=64, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.body = nn.Sequential(
            nn.Linear(n_features, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(hidden, hidden // 2), nn.ReLU(),
        )
        self.head = nn.Linear(hidden // 2, 1)
        self._scores, self._labels = [], []

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self._scores.append(torch.sigmoid(logits).squeeze(1).cpu())
        self._labels.append(y.squeeze(1).cpu())

    def on_validation_epoch_end(self):
        s, t = torch.cat(self._scores), torch.cat(self._labels)
        if t.unique().numel() > 1:
            self.log("val_auc", float(roc_auc_score(t.numpy(), s.numpy())), prog_bar=True)
        self._scores.clear()
        self._labels.clear()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    L.seed_everything(11)
    trainer = L.Trainer(max_epochs=8, accelerator="cpu", logger=False,
                        enable_checkpointing=False, enable_progress_bar=False)
    model, dm = ChurnModel(), ChurnData()
    trainer.fit(model, dm)
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})
