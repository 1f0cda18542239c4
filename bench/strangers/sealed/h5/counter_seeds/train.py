import argparse
import os

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer

from model import build
from order import batch_indices, reseed


def load_data():
    d = load_breast_cancer()
    x = torch.tensor(d.data, dtype=torch.float32)
    x = (x - x[:400].mean(0)) / x[:400].std(0)
    return x, torch.tensor(d.target, dtype=torch.float32)


def run(seed, first_to, last, path=None, verbose=False):
    """Trains to step `first_to`, or from the checkpoint to step `last`."""
    x, y = load_data()
    torch.manual_seed(seed)
    net = build()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    step, end = 0, first_to
    if path and os.path.exists(path):
        ckpt = torch.load(path)
        net.load_state_dict(ckpt["net"])
        opt.load_state_dict(ckpt["opt"])
        step, end = ckpt["step"], last
    while step < end:
        reseed(seed, step)
        rows = batch_indices(400, 25, seed, step)
        noisy = x[rows] + 0.1 * torch.randn(len(rows), x.shape[1])
        loss = F.binary_cross_entropy_with_logits(net.train()(noisy).squeeze(1), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if verbose and step % 40 == 0:
            print(f"step {step:4d} loss {loss.item():.4f}")
    if path:
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "step": step}, path)
    with torch.no_grad():
        acc = ((net.eval()(x[400:]).squeeze(1) > 0) == (y[400:] > 0.5)).float().mean().item()
    return acc, torch.cat([p.flatten() for p in net.parameters()]).detach()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=4)
    ap.add_argument("--steps", type=int, default=200)
    a = ap.parse_args()
    acc, whole = run(a.seed, a.steps, a.steps, verbose=True)
    path = "part.pt"
    run(a.seed, 77, a.steps, path)
    acc2, pieces = run(a.seed, 77, a.steps, path)
    os.remove(path)
    print(f"test acc {acc:.3f} / {acc2:.3f}, identical weights: {torch.equal(whole, pieces)}")
