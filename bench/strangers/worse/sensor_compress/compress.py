import argparse

import numpy as np
import torch
from torch import nn


def sensor_grid(n, sensors=40, sources=4):
    """Readings of 40 sensors driven by 4 hidden sources plus electronic noise."""
    rng = np.random.default_rng(99)
    z = rng.normal(size=(n, sources))
    mix = rng.normal(size=(sources, sensors)) / np.sqrt(sources)
    x = z @ mix + 0.7 * rng.normal(size=(n, sensors))
    return torch.tensor(x / x.std(), dtype=torch.float32)


class Compressor(nn.Module):
    def __init__(self, sensors, code):
        super().__init__()
        self.encode = nn.Linear(sensors, code)
        self.decode = nn.Linear(code, sensors)

    def forward(self, x):
        return self.decode(self.encode(x))


class Experiment:
    def __init__(self, args):
        self.args = args
        data = sensor_grid(6000)
        self.train, self.test = data[:5000], data[5000:]
        self.model = Compressor(40, 4)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=args.lr, weight_decay=args.wd)
        steps = args.epochs * -(-len(self.train) // args.batch)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(self.opt, args.lr, total_steps=steps)

    def epoch(self):
        total = 0.0
        for idx in torch.randperm(len(self.train)).split(self.args.batch):
            x = self.train[idx]
            loss = ((self.model(x) - x) ** 2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.sched.step()
            total += loss.item() * len(idx)
        return total / len(self.train)

    def run(self):
        for e in range(self.args.epochs):
            tr = self.epoch()
            with torch.no_grad():
                te = ((self.model(self.test) - self.test) ** 2).mean().item()
            print(f"epoch {e + 1:2d} | reconstruction train {tr:.4f} test {te:.4f}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=30)
    ap.add_argument("--batch", type=int, default=50)
    ap.add_argument("--lr", type=float, default=0.005)
    ap.add_argument("--wd", type=float, default=1e-5)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    Experiment(args).run()


if __name__ == "__main__":
    main()
