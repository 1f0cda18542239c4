import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TransactionData(L.LightningDataModule):
    def __init__(self, n=2400, batch_size=64):
        super().__init__()
        self.n, self.batch_size = n, batch_size

    def setup(self, stage=None):
        x, y = make_classification(
            self.n, n_features=24, n_informative=10, weights=[0.7], flip_y=0.02, random_state=8
        )
        x_tr, x_va, y_tr, y_va = train_test_split(x, y, test_size=0.25, stratify=y, random_state=8)
        sc = StandardScaler().fit(x_tr)
        pack = lambda a, b: TensorDataset(
            torch.tensor(sc.transform(a), dtype=torch.float32), torch.tensor(b, dtype=torch.long)
        )
        self.tr, self.va = pack(x_tr, y_tr), pack(x_va, y_va)

    def train_dataloader(self):
        return DataLoader(self.tr, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.va, self.batch_size)


class FraudClassifier(L.LightningModule):
    def __init__(self, d_in=24, hidden=64, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(d_in, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        loss = F.binary_cross_entropy_with_logits(self(x), y.float().unsqueeze(1))
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logit = self(x)
        loss = F.binary_cross_entropy_with_logits(logit, y.float().unsqueeze(1))
        hit = (logit > 0).long() == y
        self.log("val_loss", loss, prog_bar=True)
        self.log("val_acc", hit.float().mean(), prog_bar=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-3)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.trainer.max_epochs)
        return {"optimizer": opt, "lr_scheduler": sched}


class Printer(L.Callback):
    def on_validation_epoch_end(self, trainer, pl_module):
        m = trainer.callback_metrics
        print(f"epoch {trainer.current_epoch}  val_loss {m['val_loss']:.4f}  val_acc {m['val_acc']:.4f}")


if __name__ == "__main__":
    L.seed_everything(8)
    trainer = L.Trainer(
        max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0, callbacks=[Printer()],
    )
    trainer.fit(FraudClassifier(), datamodule=TransactionData())
