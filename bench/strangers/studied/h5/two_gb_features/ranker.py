"""CTR ranker on precomputed features.  The feature store keeps them in 16 bit, otherwise they do not fit."""
import argparse
import logging

import torch
from torch import nn

logging.basicConfig(format="%(message)s", level=logging.INFO)
log = logging.getLogger("ranker")


class FeatureStore:
    def __init__(self, rows: int, dims: int, seed: int):
        g = torch.Generator().manual_seed(seed)
        x = torch.randn(rows, dims, generator=g)
        w = torch.randn(dims, generator=torch.Generator().manual_seed(77)) / dims**0.5
        p = torch.sigmoid(2.5 * (x @ w) + x[:, 0] * x[:, 1] - 1.0)
        self.clicks = torch.bernoulli(p, generator=g)
        self.features = x.to(torch.bfloat16)

    def to(self, device):
        self.features, self.clicks = self.features.to(device), self.clicks.to(device)
        return self

    def batches(self, size, gen):
        for idx in torch.randperm(len(self.clicks), generator=gen).split(size):
            yield self.features[idx], self.clicks[idx]


class Ranker(nn.Module):
    def __init__(self, dims: int, width: int):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dims, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.mlp(x)).squeeze(-1).float()


def log_loss(model, store):
    model.eval()
    with torch.no_grad():
        value = nn.functional.binary_cross_entropy_with_logits(model(store.features), store.clicks).item()
    model.train()
    return value


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--dims", type=int, default=40)
    cli.add_argument("--width", type=int, default=64)
    cli.add_argument("--lr", type=float, default=2e-3)
    cli.add_argument("--epochs", type=int, default=8)
    opt = cli.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = FeatureStore(6000, opt.dims, seed=1).to(device)
    test = FeatureStore(1500, opt.dims, seed=2).to(device)

    model = Ranker(opt.dims, opt.width).to(train.features)
    optimizer = torch.optim.SGD(model.parameters(), lr=opt.lr, momentum=0.9)
    gen = torch.Generator().manual_seed(5)
    log.info("start: test log loss %.4f", log_loss(model, test))
    for epoch in range(opt.epochs):
        for x, y in train.batches(50, gen):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        log.info("epoch %d: test log loss %.4f", epoch, log_loss(model, test))


if __name__ == "__main__":
    main()
