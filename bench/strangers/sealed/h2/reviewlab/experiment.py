import json

import torch
from torch import nn
from torch.utils.data import DataLoader

from source import reviews
from text import PAD, ReviewSet

PARAMS = json.loads('{"dim": 24, "filters": 32, "epochs": 6, "lr": 0.004, "batch": 32, "max_vocab": 52}')


class ConvReview(nn.Module):
    def __init__(self, n_words, dim, filters):
        super().__init__()
        self.emb = nn.Embedding(n_words, dim, padding_idx=PAD)
        self.convs = nn.ModuleList(nn.Conv1d(dim, filters, k, padding=k // 2) for k in (1, 3))
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(2 * filters, 1)

    def forward(self, ids):
        e = self.emb(ids).transpose(1, 2)
        pooled = [torch.relu(c(e)).amax(-1) for c in self.convs]
        return self.out(self.drop(torch.cat(pooled, 1))).squeeze(1)


def build(split, n, seed, shuffle):
    ds = ReviewSet(reviews(n, seed), max_vocab=PARAMS["max_vocab"])
    print(f"{split}: {len(ds)} reviews, {len(ds.vocab)} words")
    return DataLoader(ds, PARAMS["batch"], shuffle=shuffle), ds.vocab


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum(((model(x) > 0).float() == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(0)
    train, vocab = build("train", 800, 1, True)
    valid, _ = build("valid", 240, 2, False)
    model = ConvReview(len(vocab), PARAMS["dim"], PARAMS["filters"])
    opt = torch.optim.Adam(model.parameters(), lr=PARAMS["lr"])
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(PARAMS["epochs"]):
        model.train()
        for x, y in train:
            opt.zero_grad()
            loss = bce(model(x), y.float())
            loss.backward()
            opt.step()
        print(f"{epoch} loss {loss.item():.3f} train {accuracy(model, train):.3f} valid {accuracy(model, valid):.3f}")


if __name__ == "__main__":
    main()
