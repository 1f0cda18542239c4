"""DDPM on two moons. Meant for one GPU box (also: --device cuda:1)."""
import argparse

import torch
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset

from diffusion import EpsMLP, GaussianDiffusion


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--lr", type=float, default=2e-3)
    a = ap.parse_args()
    device = torch.device(a.device)
    torch.manual_seed(0)

    pts, _ = make_moons(3000, noise=0.05, random_state=0)
    pts = torch.tensor(pts, dtype=torch.float32)
    train, held = pts[:2500], pts[2500:]
    mu, sd = train.mean(0), train.std(0)
    train, held = (train - mu) / sd, (held - mu) / sd
    loader = DataLoader(TensorDataset(train), a.batch, shuffle=True, drop_last=True, pin_memory=device.type == "cuda")

    diff = GaussianDiffusion(EpsMLP(2, 100)).to(device)
    opt = torch.optim.AdamW(diff.parameters(), lr=a.lr)
    step = 0
    while step < a.steps:
        diff.train()
        for (x,) in loader:
            opt.zero_grad(set_to_none=True)
            loss = diff(x.to(device, non_blocking=True))
            loss.backward()
            opt.step()
            step += 1
            if step % 100 == 0:
                print(step, round(loss.item(), 4))
            if step >= a.steps:
                break
    diff.eval()
    print("energy distance to held-out points:", energy_distance(diff.sample(500, 2, device), held.to(device)))


if __name__ == "__main__":
    main()
