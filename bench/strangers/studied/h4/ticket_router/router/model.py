import torch
from torch import nn


class BagClassifier(nn.Module):
    def __init__(self, vocab, teams, dim=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.head = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, teams))

    def forward(self, ids):
        return self.head(self.bag(ids))


def tensorise(tickets, vocab, teams):
    ids = torch.tensor([[vocab[w] for w in t["text"].split()] for t in tickets])
    return ids, torch.tensor([teams.index(t["team"]) for t in tickets])
