import torch
from torch import nn
from torch.utils.data import DataLoader

from series import Windows, river_level
from settings import load_settings


class LevelNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.rnn = nn.GRU(1, cfg.hidden, cfg.layers, batch_first=True,
                          dropout=cfg.dropout if cfg.layers > 1 else 0.0)
        self.out = nn.Linear(cfg.hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1]).squeeze(-1)


def main():
    cfg = load_settings()
    torch.manual_seed(cfg.train.seed)

    level = river_level(1500, seed=1)
    past, future = level[:1200], level[1200:]
    mean, std = past.mean(), past.std()
    train = DataLoader(Windows((past - mean) / std), cfg.train.batch, shuffle=True)
    valid = DataLoader(Windows((future - mean) / std), 256)

    net = LevelNet(cfg.model)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.train.lr, weight_decay=cfg.train.weight_decay)
    mse = nn.MSELoss()
    for epoch in range(1, cfg.train.epochs + 1):
        net.train()
        for x, y in train:
            opt.zero_grad()
            loss = mse(net(x), y)
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            sq = sum(((net(x) - y) ** 2).sum().item() for x, y in valid)
        print(f"epoch {epoch}/{cfg.train.epochs}  valid rmse {(sq / len(valid.dataset)) ** 0.5 * std:.4f}")


if __name__ == "__main__":
    main()
