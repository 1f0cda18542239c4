import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


def vitals(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 24, 5)).astype(np.float32).cumsum(1) * 0.3
    risk = x[:, -6:, 0].mean(1) - 0.8 * x[:, -6:, 1].mean(1) + 0.3 * rng.normal(size=n)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy((risk > 0.5).astype(np.float32)))


class SepsisModule(L.LightningModule):
    def __init__(self, hidden=32, lr=5e-3, pos_weight=1.5):
        super().__init__()
        self.save_hyperparameters()
        self.rnn = nn.GRU(5, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)
        self.train_outputs = []
        self.valid_outputs = []

    def forward(self, x):
        seq, _ = self.rnn(x)
        return self.head(seq[:, -1]).squeeze(-1)

    def _shared(self, batch):
        x, y = batch
        logit = self(x)
        w = torch.tensor(self.hparams.pos_weight, device=logit.device)
        return F.binary_cross_entropy_with_logits(logit, y, pos_weight=w), logit, y

    def training_step(self, batch, batch_idx):
        loss, logit, y = self._shared(batch)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        self.train_outputs.append({"loss": loss, "logit": logit, "y": y})
        return loss

    def validation_step(self, batch, batch_idx):
        loss, logit, y = self._shared(batch)
        self.log("val_loss", loss)
        self.valid_outputs.append((logit.cpu(), y.cpu()))

    def on_train_epoch_end(self):
        recent = self.train_outputs[-self.trainer.num_training_batches:]
        score = torch.cat([o["logit"] for o in recent]).detach().cpu().numpy()
        truth = torch.cat([o["y"] for o in recent]).cpu().numpy()
        print(f"epoch {self.current_epoch} train auc {roc_auc_score(truth, score):.3f}")

    def on_validation_epoch_end(self):
        score, truth = (torch.cat(t).numpy() for t in zip(*self.valid_outputs))
        self.valid_outputs.clear()
        auc = roc_auc_score(truth, score)
        self.log("val_auc", auc)
        print(f"epoch {self.current_epoch} valid auc {auc:.3f}")

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
        return {"optimizer": opt, "lr_scheduler": sched}


def main():
    L.seed_everything(17, verbose=False)
    train = DataLoader(vitals(900, 0), batch_size=60, shuffle=True)
    valid = DataLoader(vitals(300, 1), batch_size=150)
    trainer = L.Trainer(
        max_epochs=3, accelerator="auto", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )
    trainer.fit(SepsisModule(), train, valid)


if __name__ == "__main__":
    main()
