import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

import optimizers
from degradation import pumps


class RulNet(nn.Module):
    def __init__(self, n_in=3, hidden=32):
        super().__init__()
        self.norm_in = nn.LayerNorm(n_in)
        self.gru = nn.GRU(n_in, hidden, num_layers=2, batch_first=True)
        self.norm_out = nn.LayerNorm(hidden)
        self.head = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        h, _ = self.gru(self.norm_in(x))
        return self.head(self.norm_out(h[:, -1])).squeeze(-1)


def rmse(model, loader):
    model.eval()
    se = 0.0
    with torch.no_grad():
        for x, y in loader:
            se += ((model(x) - y) ** 2).sum().item()
    return (se / len(loader.dataset)) ** 0.5


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--weight-decay", type=float, default=1e-2)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--seed", type=int, default=0)
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    train = DataLoader(pumps(800, 0), batch_size=40, shuffle=True)
    valid = DataLoader(pumps(300, 1), batch_size=150)
    model = RulNet()
    optimizer = optimizers.build(model, a.lr, a.weight_decay)
    loss_fn = nn.HuberLoss(delta=0.2)
    for epoch in range(a.epochs):
        model.train()
        total = 0.0
        for x, y in train:
            model.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(train):.5f}, valid rmse {rmse(model, valid):.4f}")


if __name__ == "__main__":
    main()
