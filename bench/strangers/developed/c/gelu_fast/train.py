from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from ops import QuickGELU


@dataclass
class Cfg:
    dim: int = 48
    depth: int = 3
    lr: float = 1e-3
    wd: float = 0.01
    epochs: int = 5
    seed: int = 17


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tok = nn.Sequential(nn.Linear(tokens, 2 * tokens), QuickGELU(), nn.Linear(2 * tokens, tokens))
        self.chn = nn.Sequential(nn.Linear(dim, 2 * dim), QuickGELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.chn(self.n2(x))


class DigitMixer(nn.Module):
    def __init__(self, dim, depth, patch=2, size=8, classes=10):
        super().__init__()
        self.embed = nn.Conv2d(1, dim, patch, stride=patch)
        self.blocks = nn.Sequential(*(MixerBlock((size // patch) ** 2, dim) for _ in range(depth)))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, img):
        x = self.embed(img).flatten(2).transpose(1, 2)
        return self.head(self.blocks(x).mean(1))


def get_data(seed):
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16 - 0.5
    y = torch.tensor(d.target)
    tr, te = train_test_split(range(len(y)), test_size=0.25, random_state=seed, stratify=d.target)
    return TensorDataset(x[tr], y[tr]), TensorDataset(x[te], y[te])


def main(cfg=Cfg()):
    torch.manual_seed(cfg.seed)
    train, test = get_data(cfg.seed)
    net = DigitMixer(cfg.dim, cfg.depth)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr, weight_decay=cfg.wd)
    ce = nn.CrossEntropyLoss()
    for ep in range(cfg.epochs):
        net.train()
        for x, y in DataLoader(train, 64, shuffle=True):
            opt.zero_grad(set_to_none=True)
            ce(net(x), y).backward()
            opt.step()
        net.eval()
        with torch.inference_mode():
            ok = sum((net(x).argmax(-1) == y).sum().item() for x, y in DataLoader(test, 256))
        print(f"epoch {ep}  test acc {ok / len(test):.4f}")


if __name__ == "__main__":
    main()
