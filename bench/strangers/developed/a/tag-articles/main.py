"""Assign all fitting tags to an article.

usage: python main.py [--epochs 5] [--loss cross_entropy]
"""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

from corpus import TAGS, Articles
from trainer import Trainer


class Tagger(nn.Module):
    def __init__(self, words=120, dim=32, dropout=0.2):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, len(TAGS)))

    def forward(self, tokens):
        return self.mlp(self.bag(tokens))


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=5)
    cli.add_argument("--loss", default="cross_entropy")
    cli.add_argument("--lr", type=float, default=5e-3)
    opts = cli.parse_args()

    torch.manual_seed(31)
    train = DataLoader(Articles(1200, seed=1), batch_size=50, shuffle=True)
    val = DataLoader(Articles(300, seed=2), batch_size=100)
    net = Tagger()
    Trainer(net, torch.optim.Adam(net.parameters(), lr=opts.lr), loss=opts.loss).fit(train, val, opts.epochs)
