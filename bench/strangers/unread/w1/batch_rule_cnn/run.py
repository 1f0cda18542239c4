"""Image baseline with the linear batch size rule.  usage: run.py [key=value ...]"""
import ast
import sys
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

DEFAULTS = dict(
    seed=0, epochs=6, batch_size=128, reference_batch=256, base_lr=0.4,
    momentum=0.9, weight_decay=5e-4, warmup_epochs=1, width=16, label_smoothing=0.05,
)


def parse(argv):
    cfg = dict(DEFAULTS)
    for item in argv:
        key, _, value = item.partition("=")
        if key not in cfg:
            raise SystemExit(f"unknown option {key}")
        cfg[key] = ast.literal_eval(value)
    return SimpleNamespace(**cfg)


def network(w):
    def cbr(i, o, s=1):
        return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
    return nn.Sequential(cbr(1, w), cbr(w, 2 * w, 2), cbr(2 * w, 4 * w, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, 10))


def peak_lr(cfg):
    factor = cfg.batch_size // cfg.reference_batch
    return cfg.base_lr * factor


def main():
    cfg = parse(sys.argv[1:])
    torch.manual_seed(cfg.seed)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    y = torch.tensor(digits.target)
    perm = torch.randperm(len(y))
    x, y = x[perm], y[perm]
    xtr, ytr, xte, yte = x[:1408], y[:1408], x[1408:], y[1408:]

    net = network(cfg.width)
    decay = [p for p in net.parameters() if p.ndim > 1]
    plain = [p for p in net.parameters() if p.ndim <= 1]
    sgd = torch.optim.SGD(
        [{"params": decay, "weight_decay": cfg.weight_decay}, {"params": plain, "weight_decay": 0.0}],
        lr=peak_lr(cfg), momentum=cfg.momentum, nesterov=True)
    per_epoch = -(-len(xtr) // cfg.batch_size)
    warm = cfg.warmup_epochs * per_epoch
    total = cfg.epochs * per_epoch
    sched = torch.optim.lr_scheduler.SequentialLR(sgd, [
        torch.optim.lr_scheduler.LinearLR(sgd, 0.1, 1.0, total_iters=warm),
        torch.optim.lr_scheduler.CosineAnnealingLR(sgd, total - warm),
    ], milestones=[warm])

    for epoch in range(cfg.epochs):
        net.train()
        losses = []
        for idx in torch.randperm(len(xtr)).split(cfg.batch_size):
            loss = F.cross_entropy(net(xtr[idx]), ytr[idx], label_smoothing=cfg.label_smoothing)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            sched.step()
            losses.append(loss.item())
        net.eval()
        with torch.no_grad():
            acc = (net(xte).argmax(1) == yte).float().mean().item()
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
