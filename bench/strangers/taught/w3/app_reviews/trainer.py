import argparse
import json
import logging
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader

from dataset import ReviewDataset, pad_batch

log = logging.getLogger("reviews")


class StarNet(nn.Module):
    def __init__(self, n_words, dim=128, n_out=5):
        super().__init__()
        self.emb = nn.Embedding(n_words, dim, padding_idx=0)
        self.rnn = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(2 * dim, n_out)

    def forward(self, x, lens):
        packed = nn.utils.rnn.pack_padded_sequence(
            self.drop(self.emb(x)), lens.cpu(), batch_first=True, enforce_sorted=False)
        _, (h, _) = self.rnn(packed)
        return self.out(self.drop(torch.cat([h[0], h[1]], dim=-1)))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.vocab = json.loads((Path(args.root) / "vocab.json").read_text())
        self.model = StarNet(len(self.vocab) + 2).to(self.device)
        self.optim = torch.optim.Adam(self.model.parameters(), lr=args.lr)
        self.criterion = nn.CrossEntropyLoss()
        self.train_loader = self.make_loader("train", shuffle=True)
        self.val_loader = self.make_loader("val", shuffle=False)
        self.best = 0.0

    def make_loader(self, split, shuffle):
        ds = ReviewDataset(self.args.root, self.vocab, max_len=self.args.max_len)
        log.info("%s: %d reviews", split, len(ds))
        return DataLoader(ds, batch_size=self.args.batch_size, shuffle=shuffle,
                          collate_fn=pad_batch, num_workers=self.args.workers)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, lens, y in self.train_loader:
            x, y = x.to(self.device), y.to(self.device)
            self.optim.zero_grad()
            loss = self.criterion(self.model(x, lens), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optim.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hit = n = 0
        for x, lens, y in self.val_loader:
            pred = self.model(x.to(self.device), lens).argmax(-1).cpu()
            hit += (pred == y).sum().item()
            n += len(y)
        return hit / n

    def fit(self):
        for epoch in range(self.args.epochs):
            tl = self.train_epoch()
            acc = self.validate()
            log.info("epoch %d train_loss %.4f val_acc %.4f", epoch, tl, acc)
            if acc > self.best:
                self.best = acc
                torch.save(self.model.state_dict(), Path(self.args.out) / "best.pt")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    p = argparse.ArgumentParser()
    p.add_argument("--root", default="data/reviews")
    p.add_argument("--out", default="runs")
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--max-len", type=int, default=128)
    p.add_argument("--workers", type=int, default=4)
    Trainer(p.parse_args()).fit()
