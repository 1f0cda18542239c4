import argparse
import os

import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from rng import reinstate, seed_everything, snapshot
from vae import VAE


class Experiment:
    """An interrupted and continued run has to give the same numbers as one that runs through."""

    def __init__(self, seed, epochs, path):
        self.seed, self.epochs, self.path = seed, epochs, path
        self.epoch = 0
        seed_everything(seed)
        self.model = VAE()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=2e-3)

    def prepare_data(self):
        seed_everything(self.seed)
        t = torch.rand(1200) * 3 * torch.pi
        points = torch.stack([t * t.cos(), t * t.sin()], 1) / 6 + 0.05 * torch.randn(1200, 2)
        return TensorDataset(points[:1000]), points[1000:]

    def save(self):
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(),
                    "epoch": self.epoch, "rng": snapshot()}, self.path)

    def resume(self):
        state = torch.load(self.path, weights_only=False)
        self.model.load_state_dict(state["model"])
        self.opt.load_state_dict(state["opt"])
        self.epoch = state["epoch"]
        reinstate(state["rng"])

    def run(self, until=None):
        train, test = self.prepare_data()
        while self.epoch < (until or self.epochs):
            order = torch.Generator().manual_seed(1000 * self.seed + self.epoch)
            loader = DataLoader(train, batch_size=50, sampler=RandomSampler(train, generator=order), generator=order)
            self.model.train()
            for (x,) in loader:
                loss, _ = self.model(x)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            self.epoch += 1
            self.model.eval()
            with torch.no_grad():
                elbo, rec = self.model(test)
            print(f"  epoch {self.epoch}  -elbo {elbo.item():.6f}  rec {rec.item():.6f}")
            self.save()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--path", default="vae.pt")
    a = ap.parse_args()

    print("in one go")
    Experiment(a.seed, a.epochs, a.path).run()
    print("with a break")
    Experiment(a.seed, a.epochs, a.path).run(until=4)
    second = Experiment(a.seed, a.epochs, a.path)
    second.resume()
    second.run()
    os.remove(a.path)
