import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ResBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
        self.c2, self.b2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)

    def forward(self, x):
        h = F.relu(self.b1(self.c1(x)))
        return F.relu(x + self.b2(self.c2(h)))


class LitDigits(L.LightningModule):
    def __init__(self, width=16, depth=2, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
            *[ResBlock(width) for _ in range(depth)],
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, 10),
        )
        self.step_outputs = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        # training_epoch_end was removed in 2.0, see the migration guide
        self.step_outputs.append({"loss": loss, "logits": logits, "y": y})
        return loss

    def on_train_epoch_end(self):
        loss = torch.stack([o["loss"] for o in self.step_outputs]).mean()
        logits = torch.cat([o["logits"] for o in self.step_outputs])
        y = torch.cat([o["y"] for o in self.step_outputs])
        acc = (logits.argmax(1) == y).float().mean()
        self.log_dict({"train/loss": loss, "train/acc": acc}, prog_bar=True)
        self.step_outputs.clear()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val/loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val/acc", (logits.argmax(1) == y).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.trainer.max_epochs)
        return {"optimizer": opt, "lr_scheduler": sched}


class DigitsData(L.LightningDataModule):
    def setup(self, stage=None):
        d = load_digits()
        x = torch.tensor(d.images / 16.0, dtype=torch.float32).unsqueeze(1)
        y = torch.tensor(d.target)
        tr, va = train_test_split(range(len(y)), test_size=0.2, random_state=0)
        self.train_set, self.val_set = TensorDataset(x[tr], y[tr]), TensorDataset(x[va], y[va])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=128)


if __name__ == "__main__":
    L.seed_everything(0)
    trainer = L.Trainer(max_epochs=4, accelerator="auto", devices=1, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(LitDigits(), DigitsData())
    print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
