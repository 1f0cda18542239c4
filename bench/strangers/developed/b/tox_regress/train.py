"""Fingerprint -> toxicity regressor. Evaluates every `--eval-every` steps, keeps the best step in memory."""
import argparse
import copy
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn


@contextmanager
def evaluating(net):
    """Put `net` into inference and put it back the way it was afterwards."""
    net.eval()
    mode = net.training
    try:
        with torch.no_grad():
            yield net
    finally:
        net.train(mode)


def fingerprints(n, bits, rng):
    x = (rng.random((n, bits)) < 0.08).astype(np.float32)
    groups = np.random.default_rng(5).normal(size=(bits,))
    pairs = np.random.default_rng(6).integers(0, bits, (40, 2))
    y = x @ groups + sum(1.5 * x[:, i] * x[:, j] for i, j in pairs) + 0.3 * rng.normal(size=n)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))


class ToxNet(nn.Sequential):
    def __init__(self, bits, width, p):
        super().__init__(
            nn.Linear(bits, width), nn.BatchNorm1d(width), nn.SiLU(), nn.Dropout(p),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.SiLU(), nn.Dropout(p),
            nn.Linear(width, 1), nn.Flatten(0),
        )


def endless(x, y, bs, gen):
    while True:
        order = torch.randperm(len(x), generator=gen)
        for k in range(0, len(order) - bs + 1, bs):
            yield x[order[k:k + bs]], y[order[k:k + bs]]


def rmse(net, x, y):
    with evaluating(net) as m:
        return (m(x) - y).square().mean().sqrt().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--eval-every", type=int, default=50)
    ap.add_argument("--width", type=int, default=128)
    ap.add_argument("--dropout", type=float, default=0.3)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--seed", type=int, default=11)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    x, y = fingerprints(1600, 256, rng)
    xv, yv = fingerprints(400, 256, rng)
    centre, scale = y.mean(), y.std()
    y, yv = (y - centre) / scale, (yv - centre) / scale

    net = ToxNet(256, args.width, args.dropout)
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.steps)
    stream = endless(x, y, 64, torch.Generator().manual_seed(args.seed))

    net.train()
    print(f"rmse before training: {rmse(net, xv, yv):.3f}")
    best, snapshot = float("inf"), None
    for step in range(1, args.steps + 1):
        xb, yb = next(stream)
        loss = nn.functional.smooth_l1_loss(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        sched.step()
        if step % args.eval_every == 0:
            err = rmse(net, xv, yv)
            print(f"step {step:4d}  loss {loss.item():.4f}  val rmse {err:.4f}")
            if err < best:
                best, snapshot = err, copy.deepcopy(net.state_dict())
    net.load_state_dict(snapshot)
    print(f"best val rmse {rmse(net, xv, yv):.4f}")


if __name__ == "__main__":
    main()
