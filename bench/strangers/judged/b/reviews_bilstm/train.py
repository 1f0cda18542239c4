import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader

from corpus import ITOS, collate, make
from modes import inference


class BiLSTM(nn.Module):
    def __init__(self, vocab, dim=32, hid=32, p=0.4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.word_drop = nn.Dropout(p)
        self.rnn = nn.LSTM(dim, hid, num_layers=2, bidirectional=True, batch_first=True, dropout=p)
        self.head = nn.Sequential(nn.Dropout(p), nn.Linear(2 * hid, 2))

    def forward(self, ids, n):
        e = self.word_drop(self.emb(ids))
        _, (h, _) = self.rnn(pack_padded_sequence(e, n, batch_first=True, enforce_sorted=False))
        return self.head(torch.cat([h[-2], h[-1]], dim=-1))


class Fitter:
    def __init__(self, net, lr=3e-3, check_every=15):
        self.net, self.check_every = net, check_every
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.ExponentialLR(self.opt, 0.8)
        self.ce = nn.CrossEntropyLoss()
        self.step = 0

    def check(self, loader):
        right = total = 0
        with inference(self.net) as net:
            for ids, n, y in loader:
                right += (net(ids, n).argmax(1) == y).sum().item()
                total += len(y)
        return right / total

    def fit(self, train, dev, epochs):
        print(f"start: dev acc {self.check(dev):.3f}")
        self.net.train()
        for epoch in range(epochs):
            for ids, n, y in train:
                self.opt.zero_grad()
                loss = self.ce(self.net(ids, n), y)
                loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
                self.opt.step()
                self.step += 1
                if self.step % self.check_every == 0:
                    print(f"[{epoch}/{self.step}] loss {loss.item():.3f} dev acc {self.check(dev):.3f}")
            self.sched.step()


if __name__ == "__main__":
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    tr = DataLoader(make(800, 1), batch_size=32, shuffle=True, collate_fn=collate)
    dv = DataLoader(make(200, 2), batch_size=64, collate_fn=collate)
    Fitter(BiLSTM(len(ITOS))).fit(tr, dv, epochs=3)
