import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import make_moons

from flat import MoonNet, SharpnessAware


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--width", type=int, default=32)
    p.add_argument("--rho", type=float, default=0.05)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--noise", type=float, default=0.2)
    return p.parse_args()


def load(noise, n, seed):
    X, y = make_moons(n, noise=noise, random_state=seed)
    return torch.tensor(X, dtype=torch.float32), torch.tensor(y)


def main(args):
    torch.manual_seed(1)
    x, y = load(args.noise, 600, 0)
    xt, yt = load(args.noise, 400, 1)
    model = MoonNet(args.width)
    opt = SharpnessAware(model.parameters(), torch.optim.SGD, rho=args.rho, lr=args.lr, momentum=0.9)

    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(50):
            xb, yb = x[idx], y[idx]

            def closure():
                opt.zero_grad()
                loss = F.cross_entropy(model(xb), yb)
                loss.backward()
                return loss

            total += opt.step(closure).item() * len(idx)
        if epoch % 5 == 4:
            model.eval()
            with torch.no_grad():
                acc = (model(xt).argmax(1) == yt).float().mean().item()
            print(f"epoch {epoch + 1} loss {total / len(x):.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main(parse())
