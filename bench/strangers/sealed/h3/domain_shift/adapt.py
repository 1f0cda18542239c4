import argparse
import math

import numpy as np
import torch
import torch.nn.functional as F

from dann import DomainNet


def blobs(n, shift, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 6))
    x[:, 0] += 3.0 * y
    x[:, 1:4] += shift
    x[:, 4] += 1.5 * shift * (1 - 2 * y) * (rng.random(n) < 0.5)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x, 0.0)[0].argmax(1) == y).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=250)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--max-strength", type=float, default=0.5)
    a = ap.parse_args()
    torch.manual_seed(0)
    xs, ys = blobs(1000, 0.0, 0)
    xt, yt = blobs(1000, 1.2, 1)
    net = DomainNet(6)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    domain = torch.cat([torch.zeros(a.batch), torch.ones(a.batch)]).long()
    for step in range(1, a.steps + 1):
        net.train()
        strength = a.max_strength * (2 / (1 + math.exp(-6 * step / a.steps)) - 1)
        i, j = torch.randint(len(xs), (a.batch,)), torch.randint(500, (a.batch,))
        task, dom = net(torch.cat([xs[i], xt[j]]), strength)
        loss = F.cross_entropy(task[:a.batch], ys[i]) + F.cross_entropy(dom, domain)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f} source {accuracy(net, xs, ys):.3f} target {accuracy(net, xt[500:], yt[500:]):.3f}")


if __name__ == "__main__":
    main()
