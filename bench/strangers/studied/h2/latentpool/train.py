import argparse
import io
import math

import torch
import torch.nn.functional as F

from perceiver.model import PointPerceiver


def trajectories(n, n_points, seed):
    """Closed curves with k lobes; the class is k."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(4, (n,), generator=g)
    t = torch.linspace(0, 2 * math.pi, n_points)
    phase = 0.8 * torch.rand(n, 1, generator=g)
    r = 1 + 0.4 * torch.cos((y[:, None] + 2) * t + phase)
    pts = torch.stack([r * torch.cos(t), r * torch.sin(t)], -1)
    return pts + 0.05 * torch.randn(pts.shape, generator=g), y


def main(a):
    torch.manual_seed(a.seed)
    x, y = trajectories(1200, a.points, 1)
    xt, yt = trajectories(300, a.points, 2)
    net = PointPerceiver(a.points, 4, dim=a.dim)
    opt = torch.optim.AdamW(net.parameters(), lr=a.lr, weight_decay=0.01)
    best, best_state = 0.0, None
    for epoch in range(a.epochs):
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            acc = (net(xt).argmax(1) == yt).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} test {acc:.3f}")
        if acc >= best:
            best, best_state = acc, io.BytesIO()
            torch.save(net.state_dict(), best_state)

    # check the exported weights the way the service loads them
    best_state.seek(0)
    served = PointPerceiver(a.points, 4, dim=a.dim)
    served.load_state_dict(torch.load(best_state))
    with torch.no_grad():
        print(f"reloaded: {(served(xt).argmax(1) == yt).float().mean().item():.3f} (best {best:.3f})")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--points", type=int, default=24)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--epochs", type=int, default=8)
    main(p.parse_args())
