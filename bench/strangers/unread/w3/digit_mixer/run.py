import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BASE = {
    "seed": 3,
    "model": {"dim": 48, "depth": 3, "token_dim": 32, "channel_dim": 96},
    "optim": {"lr": 2e-3, "betas": (0.9, 0.98), "weight_decay": 0.1, "skip": ("bias", "norm")},
    "train": {"epochs": 12, "batch": 64},
}
OVERRIDES = {"train": {"epochs": 10}, "model": {"depth": 2}}


def merge(a, b):
    out = dict(a)
    for k, v in b.items():
        out[k] = merge(a[k], v) if isinstance(v, dict) else v
    return out


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim, token_dim, channel_dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tok = nn.Sequential(nn.Linear(tokens, token_dim), nn.GELU(), nn.Linear(token_dim, tokens))
        self.chn = nn.Sequential(nn.Linear(dim, channel_dim), nn.GELU(), nn.Linear(channel_dim, dim))

    def forward(self, x):
        x = x + self.tok(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.chn(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, dim, depth, token_dim, channel_dim, classes=10):
        super().__init__()
        self.embed = nn.Linear(4, dim)
        self.blocks = nn.Sequential(*[MixerBlock(16, dim, token_dim, channel_dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, img):
        p = img.unfold(1, 2, 2).unfold(2, 2, 2).reshape(len(img), 16, 4)
        return self.head(self.norm(self.blocks(self.embed(p))).mean(1))


def make_adamw(model, lr, betas, weight_decay, skip):
    plain, decayed = [], []
    for name, p in model.named_parameters():
        (plain if any(s in name for s in skip) else decayed).append(p)
    return torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": weight_decay / lr},
            {"params": plain, "weight_decay": 0.0},
        ],
        lr=lr,
        betas=betas,
    )


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(-1) == y).float().mean().item()


def main(cfg):
    torch.manual_seed(cfg["seed"])
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x / 8.0 - 1.0, dtype=torch.float32).view(-1, 8, 8)
    y = torch.tensor(y)
    idx_tr, idx_va = train_test_split(range(len(y)), test_size=0.2, random_state=cfg["seed"], stratify=y)
    xt, yt, xv, yv = x[idx_tr], y[idx_tr], x[idx_va], y[idx_va]
    model = Mixer(**cfg["model"])
    opt = make_adamw(model, **cfg["optim"])
    bs = cfg["train"]["batch"]
    for epoch in range(cfg["train"]["epochs"]):
        model.train()
        tot = 0.0
        for ids in torch.randperm(len(yt)).split(bs):
            loss = F.cross_entropy(model(xt[ids]), yt[ids])
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * len(ids)
        print(f"epoch {epoch:02d} train {tot / len(yt):.4f} val acc {accuracy(model, xv, yv):.4f}")


if __name__ == "__main__":
    main(merge(BASE, OVERRIDES))
