import argparse
import copy

import torch
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset

from model import Denoiser
from schedule import NoiseSchedule


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--ema", type=float, default=0.99)
    ap.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return ap.parse_args()


def points(n, seed):
    xy, _ = make_moons(n, noise=0.05, random_state=seed)
    return torch.tensor(xy, dtype=torch.float32)


def denoising_loss(net, sched, x0):
    t = torch.randint(0, sched.steps, (len(x0),), device=x0.device)
    noise = torch.randn_like(x0)
    return (net(sched.q_sample(x0, t, noise), t) - noise).pow(2).mean()


@torch.no_grad()
def update_ema(ema, net, decay):
    for e, p in zip(ema.parameters(), net.parameters()):
        e.lerp_(p, 1 - decay)


@torch.no_grad()
def sample(net, sched, n, device):
    x = torch.randn(n, 2, device=device)
    for k in reversed(range(sched.steps)):
        t = torch.full((n,), k, device=device)
        mean, sigma = sched.p_mean(x, k, net(x, t))
        x = mean + sigma * torch.randn_like(x) if k else mean
    return x


def main():
    args = get_args()
    torch.manual_seed(0)
    device = torch.device(args.device)

    train = points(2000, seed=0)
    center, scale = train.mean(0), train.std(0)
    held = ((points(500, seed=1) - center) / scale).to(device)
    loader = DataLoader(TensorDataset((train - center) / scale), batch_size=128, shuffle=True,
                        pin_memory=device.type == "cuda")

    net = Denoiser().to(device)
    ema = copy.deepcopy(net).requires_grad_(False).eval()
    sched = NoiseSchedule()
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        net.train()
        for (x0,) in loader:
            x0 = x0.to(device, non_blocking=True)
            loss = denoising_loss(net, sched, x0)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            update_ema(ema, net, args.ema)
        with torch.no_grad():
            print(f"epoch {epoch}: train {loss.item():.4f} held-out {denoising_loss(ema, sched, held).item():.4f}")

    xs = sample(ema, sched, 256, device).cpu() * scale + center
    print("sample mean", xs.mean(0).tolist())


if __name__ == "__main__":
    main()
