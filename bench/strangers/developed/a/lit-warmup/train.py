import math

import lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


class MarkerData(pl.LightningDataModule):
    """Which of the six marker tokens occurs most often in the sequence?"""

    def __init__(self, n=2400, length=16, batch_size=32):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage):
        gen = torch.Generator().manual_seed(0)
        fav = torch.randint(6, (self.hparams.n,), generator=gen)
        probs = torch.full((self.hparams.n, 6), 0.13)
        probs.scatter_(1, fav[:, None], 0.35)
        x = torch.multinomial(probs, self.hparams.length, replacement=True, generator=gen)
        counts = F.one_hot(x, 6).sum(1)
        y = counts.argmax(1)
        full = TensorDataset(x, y)
        self.train_set, self.val_set = random_split(full, [0.8, 0.2], generator=gen)

    def train_dataloader(self):
        return DataLoader(self.train_set, self.hparams.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, 240)


class SeqClassifier(pl.LightningModule):
    def __init__(self, dim=32, heads=4, lr=2e-3, warmup_steps=100, total_steps=300, weight_decay=0.01):
        super().__init__()
        self.save_hyperparameters()
        self.tok = nn.Embedding(6, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(1, 16, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 6)

    def forward(self, x):
        h = self.body(self.tok(x) + self.pos)
        return self.head(self.norm(h.mean(1)))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        out = self(x)
        self.log("val_loss", F.cross_entropy(out, y))
        self.log("val_acc", (out.argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            m = self.trainer.callback_metrics
            lr = self.optimizers().param_groups[0]["lr"]
            print(f"epoch {self.current_epoch} val_loss {m['val_loss']:.3f} val_acc {m['val_acc']:.3f} lr {lr:.2e}")

    def _factor(self, step):
        """Linear warmup followed by a half cosine."""
        hp = self.hparams
        if step < hp.warmup_steps:
            return (step + 1) / hp.warmup_steps
        done = (step - hp.warmup_steps) / max(1, hp.total_steps - hp.warmup_steps)
        return 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))

    def configure_optimizers(self):
        decay = [p for p in self.parameters() if p.ndim > 1]
        rest = [p for p in self.parameters() if p.ndim <= 1]
        optimizer = torch.optim.AdamW([
            {"params": decay, "weight_decay": self.hparams.weight_decay},
            {"params": rest, "weight_decay": 0.0},
        ], lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, self._factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "name": "lr"}}


def main():
    pl.seed_everything(9, workers=True)
    data = MarkerData()
    epochs = 5
    steps = epochs * math.ceil(0.8 * 2400 / 32)
    net = SeqClassifier(warmup_steps=steps // 3, total_steps=steps)
    trainer = pl.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0)
    trainer.fit(net, datamodule=data)


if __name__ == "__main__":
    main()
