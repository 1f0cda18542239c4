# tiny ViT on the 8x8 digits, launched as: python train.py --epochs 4
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--blr", type=float, default=1e-3, help="base learning rate: absolute_lr = base_lr * total_batch_size")
    p.add_argument("--weight-decay", type=float, default=0.05)
    p.add_argument("--dim", type=int, default=48)
    p.add_argument("--depth", type=int, default=2)
    p.add_argument("--world-size", type=int, default=1)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class TinyViT(nn.Module):
    def __init__(self, dim, depth, n_classes=10):
        super().__init__()
        self.patch = nn.Conv2d(1, dim, 2, stride=2)
        self.pos = nn.Parameter(torch.randn(1, 16, dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, n_classes)

    def forward(self, img):
        x = self.patch(img).flatten(2).transpose(1, 2) + self.pos
        return self.head(self.norm(self.blocks(x)).mean(1))


def main(args):
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    images, targets = load_digits(return_X_y=True)
    images = (images / 16.0 - 0.5).astype(np.float32).reshape(-1, 1, 8, 8)
    xtr, xte, ytr, yte = map(torch.as_tensor, train_test_split(images, targets, test_size=0.25, random_state=0))

    model = TinyViT(args.dim, args.depth)
    eff_batch_size = args.batch_size * args.world_size
    args.lr = args.blr * eff_batch_size
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay, betas=(0.9, 0.95))
    print("effective batch size: %d" % eff_batch_size)

    for epoch in range(args.epochs):
        model.train()
        order = torch.randperm(len(xtr))
        losses = []
        for idx in order.split(args.batch_size):
            loss = F.cross_entropy(model(xtr[idx]), ytr[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            acc = (model(xte).argmax(-1) == yte).float().mean()
        print(f"epoch {epoch}: train {np.mean(losses):.3f}  test acc {acc:.3f}")


if __name__ == "__main__":
    main(get_args())
