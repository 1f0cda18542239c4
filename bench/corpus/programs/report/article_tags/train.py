"""Multi-label tagging of (generated) bag-of-words articles with Lightning."""
import os
import warnings

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MultilabelF1Score

warnings.filterwarnings("ignore", ".*num_workers.*")
SEED = int(os.environ.get("SEED", 0))
N_TAGS, N_WORDS = 10, 200


def make_articles(n, rng, topics):
    """Each article mixes the word distributions of its tags."""
    tags = (rng.random((n, N_TAGS)) < 0.22).astype(np.float32)
    empty = tags.sum(1) == 0
    tags[empty, rng.integers(0, N_TAGS, empty.sum())] = 1.0
    share = tags * rng.uniform(0.6, 1.4, tags.shape)
    probs = 0.5 * (share / share.sum(1, keepdims=True)) @ topics + 0.5 / N_WORDS
    lengths = rng.integers(80, 160, n)
    counts = np.stack([rng.multinomial(m, p / p.sum()) for m, p in zip(lengths, probs)])
    return counts.astype(np.float32), tags


class ArticleData(L.LightningDataModule):
    def __init__(self, batch_size=64, seed=7):
        super().__init__()
        self.batch_size = batch_size
        self.seed = seed

    def setup(self, stage=None):
        if hasattr(self, "train"):
            return
        rng = np.random.default_rng(self.seed)
        topics = rng.dirichlet(np.full(N_WORDS, 0.08), size=N_TAGS)
        (x_tr, y_tr), (x_va, y_va), (x_te, y_te) = [
            make_articles(n, rng, topics) for n in (3200, 600, 800)]
        # tf-idf by hand, document frequencies from the training part
        self.idf = np.log((1 + len(x_tr)) / (1 + (x_tr > 0).sum(0))) + 1.0
        self.tag_freq = torch.from_numpy(y_tr.mean(0))
        self.train, self.val, self.test = (
            self._pack(x_tr, y_tr), self._pack(x_va, y_va), self._pack(x_te, y_te))

    def _pack(self, counts, tags):
        x = np.log1p(counts) * self.idf
        x = x / np.linalg.norm(x, axis=1, keepdims=True) * np.sqrt(N_WORDS) * 0.5
        return TensorDataset(torch.from_numpy(x.astype(np.float32)), torch.from_numpy(tags))

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=256)

    def test_dataloader(self):
        return DataLoader(self.test, batch_size=256)


class Tagger(L.LightningModule):
    def __init__(self, hidden=96, lr=2e-3, weight_decay=1e-2, dropout=0.3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(N_WORDS, hidden), nn.LayerNorm(hidden), nn.GELU(), nn.Dropout(dropout),
            nn.Linear(hidden, N_TAGS),
        )
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=torch.full((N_TAGS,), 1.5))
        self.val_f1 = MultilabelF1Score(num_labels=N_TAGS, average="micro")
        self.test_f1 = MultilabelF1Score(num_labels=N_TAGS, average="micro")

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.criterion(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", self.criterion(logits, y))
        self.val_f1(logits.sigmoid(), y.int())
        self.log("val_f1", self.val_f1)

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.test_f1(self(x).sigmoid(), y.int())
        self.log("test_f1", self.test_f1)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr,
                                weight_decay=self.hparams.weight_decay)
        sched = torch.optim.lr_scheduler.StepLR(opt, step_size=4, gamma=0.5)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "epoch"}}


class PrintEpoch(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        m = trainer.callback_metrics
        print(f"epoch {trainer.current_epoch}: train_loss {m['train_loss']:.4f} "
              f"val_loss {m['val_loss']:.4f} val_f1 {m['val_f1']:.4f}", flush=True)


def main():
    L.seed_everything(SEED)
    data = ArticleData()
    model = Tagger()
    ckpt = ModelCheckpoint(dirpath="checkpoints", monitor="val_f1", mode="max", save_top_k=1,
                           filename="tagger", enable_version_counter=False)
    trainer = L.Trainer(
        max_epochs=10,
        accelerator="cpu",
        devices=1,
        gradient_clip_val=1.0,
        callbacks=[ckpt, PrintEpoch()],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        deterministic=True,
    )
    trainer.fit(model, data)
    result = trainer.test(model, data, ckpt_path="best", verbose=False)
    print(f"test micro F1: {result[0]['test_f1']:.4f}")


if __name__ == "__main__":
    main()
