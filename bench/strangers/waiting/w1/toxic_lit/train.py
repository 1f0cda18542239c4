import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

from module import ToxicityModule


class CommentData(L.LightningDataModule):
    def __init__(self, n=2000, vocab=500, length=20, bs=64):
        super().__init__()
        self.n, self.vocab, self.length, self.bs = n, vocab, length, bs

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(3)
        ids = torch.randint(0, self.vocab, (self.n, self.length), generator=g)
        bad_words = torch.randint(0, 4, (self.vocab,), generator=g)
        flags = torch.rand(self.vocab, generator=g) < 0.05
        labels = torch.zeros(self.n, 4)
        for k in range(4):
            hits = (flags[ids] & (bad_words[ids] == k)).any(1)
            labels[:, k] = hits.float()
        cut = int(0.85 * self.n)
        self.train_ds = TensorDataset(ids[:cut], labels[:cut])
        self.val_ds = TensorDataset(ids[cut:], labels[cut:])

    def train_dataloader(self):
        return DataLoader(self.train_ds, self.bs, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_ds, 256)


if __name__ == "__main__":
    L.seed_everything(11)
    dm = CommentData()
    model = ToxicityModule()
    trainer = L.Trainer(max_epochs=8, accelerator="cpu", logger=False,
                        enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False)
    trainer.fit(model, dm)
    print(trainer.validate(model, dm))
