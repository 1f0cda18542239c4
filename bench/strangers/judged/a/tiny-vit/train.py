from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


@dataclass
class Cfg:
    patch: int = 2
    dim: int = 32
    depth: int = 2
    heads: int = 4
    lr: float = 3e-3
    wd: float = 0.05
    betas: tuple = (0.9, 0.95)
    epochs: int = 6
    bs: int = 64
    seed: int = 1337


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1 = nn.LayerNorm(c.dim)
        self.attn = nn.MultiheadAttention(c.dim, c.heads, batch_first=True)
        self.ln_2 = nn.LayerNorm(c.dim)
        self.mlp = nn.Sequential(nn.Linear(c.dim, 4 * c.dim), nn.GELU(), nn.Linear(4 * c.dim, c.dim))

    def forward(self, x):
        h = self.ln_1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class ViT(nn.Module):
    def __init__(self, c, n_classes=10, size=8):
        super().__init__()
        n = (size // c.patch) ** 2
        self.to_patch = nn.Conv2d(1, c.dim, c.patch, c.patch)
        self.cls_token = nn.Parameter(torch.randn(1, 1, c.dim) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, n + 1, c.dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(c) for _ in range(c.depth)])
        self.ln_f = nn.LayerNorm(c.dim)
        self.head = nn.Linear(c.dim, n_classes)

    def forward(self, x):
        x = self.to_patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head(self.ln_f(self.blocks(x))[:, 0])

    def configure_optimizers(self, c):
        # weight decay on matrices only, as in minGPT
        params = dict(self.named_parameters())
        decay = {k for k in params if k.endswith("weight") and "ln_" not in k}
        no_decay = {k for k in params if k.endswith("bias") or "ln_" in k}
        assert not decay & no_decay
        groups = [
            {"params": [params[k] for k in sorted(decay)], "weight_decay": c.wd},
            {"params": [params[k] for k in sorted(no_decay)], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=c.lr, betas=c.betas)


def get_data(c):
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16.0 - 0.5
    y = torch.tensor(d.target)
    tr, te = train_test_split(np.arange(len(y)), test_size=0.25, stratify=d.target, random_state=c.seed)
    return (x[tr], y[tr]), (x[te], y[te])


def main(c=Cfg()):
    torch.manual_seed(c.seed)
    (xt, yt), (xv, yv) = get_data(c)
    model = ViT(c)
    opt = model.configure_optimizers(c)
    steps = c.epochs * (len(xt) // c.bs)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1, (s + 1) / 20) * max(0.05, 1 - s / steps))

    for ep in range(c.epochs):
        model.train()
        idx = torch.randperm(len(xt))
        for i in range(0, len(xt) - c.bs + 1, c.bs):
            j = idx[i:i + c.bs]
            loss = F.cross_entropy(model(xt[j]), yt[j])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
        model.eval()
        with torch.no_grad():
            acc = (model(xv).argmax(1) == yv).float().mean()
        print(f"ep {ep} loss {loss.item():.3f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
