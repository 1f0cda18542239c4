import copy

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class DigitsDM(L.LightningDataModule):
    def __init__(self, labelled=100, batch=64):
        super().__init__()
        self.batch = batch
        d = load_digits()
        x = torch.tensor(d.data / 16.0, dtype=torch.float32)
        y = torch.tensor(d.target)
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
        tr, te = order[:1400], order[1400:]
        partial = y[tr].clone()
        partial[labelled:] = -1
        self.train_set, self.val_set = TensorDataset(x[tr], partial), TensorDataset(x[te], y[te])

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, 256)


class MeanTeacher(L.LightningModule):
    def __init__(self, lr=2e-3, decay=0.98, weight=3.0):
        super().__init__()
        self.save_hyperparameters()
        self.student = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))
        self.teacher = copy.deepcopy(self.student).requires_grad_(False).eval()

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def training_step(self, batch, _):
        x, y = batch
        noisy = x + 0.1 * torch.randn_like(x)
        logits = self.student(noisy)
        known = (y >= 0).sum().clamp(min=1)
        supervised = F.cross_entropy(logits, y, ignore_index=-1, reduction="sum") / known
        with torch.no_grad():
            goal = self.teacher(x).softmax(-1)
        consistency = F.mse_loss(logits.softmax(-1), goal)
        ramp = min(1.0, self.global_step / 100)
        return supervised + self.hparams.weight * ramp * consistency

    def on_train_batch_end(self, *_):
        with torch.no_grad():
            for t, s in zip(self.teacher.parameters(), self.student.parameters()):
                t.lerp_(s, 1 - self.hparams.decay)

    def validation_step(self, batch, _):
        x, y = batch
        self.log_dict({"teacher": (self.teacher(x).argmax(1) == y).float().mean(),
                       "student": (self.student(x).argmax(1) == y).float().mean()})

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        if self.current_epoch % 3 == 2:
            print(f"epoch {self.current_epoch} teacher {m['teacher']:.3f} student {m['student']:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.student.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    trainer = L.Trainer(max_epochs=15, accelerator="auto", devices=1, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(MeanTeacher(), datamodule=DigitsDM())
