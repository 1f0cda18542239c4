"""Temporal convolution for activity recognition; Accelerate with gradient accumulation and frozen filterbank."""
import argparse
import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def activities(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    t = torch.linspace(0, 1, 64)
    freq = torch.tensor([2.0, 5.0, 9.0, 14.0])[y]
    ph = 2 * math.pi * torch.rand(n, 3, 1, generator=g)
    x = torch.sin(2 * math.pi * freq[:, None, None] * t + ph) + 0.7 * torch.randn(n, 3, 64, generator=g)
    return TensorDataset(x, y)


class FilterBank(nn.Module):
    """Fixed Gabor filters; registered as frozen parameters so that they land in the checkpoint."""

    def __init__(self, n=8, width=17):
        super().__init__()
        t = torch.linspace(-1, 1, width)
        f = torch.linspace(0.5, 5, n)[:, None]
        bank = torch.exp(-4 * t ** 2) * torch.cos(2 * math.pi * f * t)
        self.bank = nn.Parameter(bank[:, None].repeat(3, 1, 1), requires_grad=False)

    def forward(self, x):
        return torch.log1p(nn.functional.conv1d(x, self.bank, padding=8, groups=3).pow(2))


def build():
    return nn.Sequential(FilterBank(), nn.Conv1d(24, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(), nn.AvgPool1d(4),
                         nn.Conv1d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                         nn.Dropout(0.1), nn.Linear(32, 4))


def main(args):
    acc = Accelerator(gradient_accumulation_steps=args.accum, cpu=not torch.cuda.is_available())
    set_seed(args.seed)
    model = build()
    optim = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=args.lr)
    train = DataLoader(activities(640, 1), args.batch, shuffle=True)
    held = DataLoader(activities(200, 2), 50)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optim, T_max=args.epochs * math.ceil(len(train) / args.accum))
    model, optim, train, held, sched = acc.prepare(model, optim, train, held, sched)

    for epoch in range(args.epochs):
        model.train()
        for x, y in train:
            with acc.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.02)
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(model.parameters(), 1.0)
                optim.step()
                sched.step()
                optim.zero_grad()

        model.eval()
        hits = []
        for x, y in held:
            with torch.inference_mode():
                pred = model(x).argmax(-1)
            pred, y = acc.gather_for_metrics((pred, y))
            hits.append(pred == y)
        acc.print(f"epoch {epoch}: held-out acc {torch.cat(hits).float().mean().item():.3f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    for name, default in dict(seed=3, batch=16, accum=4, epochs=4).items():
        ap.add_argument(f"--{name}", type=int, default=default)
    ap.add_argument("--lr", type=float, default=4e-3)
    main(ap.parse_args())
