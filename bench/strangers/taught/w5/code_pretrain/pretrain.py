import glob
import os

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEP = 0


def corpus():
    files = sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "*.py")))[:12]
    docs = [open(f, encoding="utf-8", errors="ignore").read()[:8000] for f in files]
    chars = sorted(set("".join(docs)))
    table = {c: i + 1 for i, c in enumerate(chars)}
    stream = []
    for d in docs:
        stream += [table[c] for c in d] + [SEP]
    return torch.tensor(stream), len(chars) + 1


class Blocks(Dataset):
    def __init__(self, stream, size):
        self.blocks = stream[: len(stream) // size * size].view(-1, size)

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, i):
        ids = self.blocks[i]
        return {"input_ids": ids, "labels": ids.clone()}


class CharGRU(L.LightningModule):
    def __init__(self, vocab, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.emb = nn.Embedding(vocab, 48)
        self.rnn = nn.GRU(48, 128, batch_first=True)
        self.head = nn.Linear(128, vocab)
        self.history = []

    def _loss(self, batch):
        h, _ = self.rnn(self.emb(batch["input_ids"][:, :-1]))
        return F.cross_entropy(self.head(h).transpose(1, 2), batch["labels"][:, 1:])

    def training_step(self, batch, i):
        loss = self._loss(batch)
        self.history.append(loss.detach())
        return loss

    def validation_step(self, batch, i):
        self.log("val_loss", self._loss(batch), prog_bar=True, sync_dist=True)

    def on_train_epoch_end(self):
        self.print(f"epoch {self.current_epoch} train {torch.stack(self.history).mean():.3f}")
        self.history.clear()

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)}


def main():
    L.seed_everything(7, workers=True)
    stream, vocab = corpus()
    cut = int(len(stream) * 0.9)
    train = DataLoader(Blocks(stream[:cut], 64), batch_size=32, shuffle=True)
    val = DataLoader(Blocks(stream[cut:], 64), batch_size=64)
    # Trainer puts in a DistributedSampler by itself when it runs on more devices
    trainer = L.Trainer(max_epochs=3, accelerator="auto", devices="auto", strategy="auto", gradient_clip_val=1.0,
                        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(CharGRU(vocab), train, val)
    print("val", float(trainer.callback_metrics["val_loss"]))


if __name__ == "__main__":
    main()
