"""Gesture recognition from glove sensors. Own little callback system."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def recordings(n, seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, 40)
    lab = rng.integers(0, 5, n)
    base = np.stack([np.sin(2 * np.pi * (k + 1) * t) for k in range(5)])
    x = base[lab][:, None, :] * rng.uniform(0.5, 1.5, (n, 6, 1)) + 0.5 * rng.normal(size=(n, 6, 40))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(lab))


class Callback:
    def after_backward(self, run): ...
    def after_epoch(self, run): ...


class LayerReport(Callback):
    """Mean size of the gradient of each layer, shown after the epoch."""

    def __init__(self):
        self.total, self.n = {}, 0

    def after_backward(self, run):
        for name, p in run.model.named_parameters():
            size = float(p.grad.norm())
            self.total[name] = self.total.get(name, 0.0) + size
        self.n += 1

    def after_epoch(self, run):
        top = sorted(self.total.items(), key=lambda kv: -kv[1])[:3]
        print("   largest gradients:", ", ".join(f"{k} {v / self.n:.3f}" for k, v in top))
        self.total, self.n = {}, 0


class Accuracy(Callback):
    def __init__(self, loader):
        self.loader = loader

    @torch.no_grad()
    def after_epoch(self, run):
        run.model.eval()
        hits = torch.zeros((), device=run.device, dtype=torch.long)
        for x, y in self.loader:
            hits += (run.model(x.to(run.device)).argmax(1) == y.to(run.device)).sum()
        print(f"epoch {run.epoch} accuracy {hits.item() / len(self.loader.dataset):.3f}")


class Run:
    def __init__(self, model, loader, lr, callbacks):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.loader, self.callbacks = loader, callbacks
        self.opt = torch.optim.RMSprop(self.model.parameters(), lr=lr)

    def _emit(self, event):
        for cb in self.callbacks:
            getattr(cb, event)(self)

    def fit(self, epochs):
        for self.epoch in range(epochs):
            self.model.train()
            for x, y in self.loader:
                x = x.to(self.device, non_blocking=True)
                y = y.to(self.device, non_blocking=True)
                self.opt.zero_grad(set_to_none=True)
                nn.functional.cross_entropy(self.model(x), y).backward()
                self._emit("after_backward")
                self.opt.step()
            self._emit("after_epoch")


def glove_net():
    return nn.Sequential(
        nn.Conv1d(6, 16, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(16, 16, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(5),
        nn.Flatten(), nn.Linear(80, 5),
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    pin = torch.cuda.is_available()
    train = DataLoader(recordings(800, 0), 32, shuffle=True, pin_memory=pin)
    valid = DataLoader(recordings(250, 1), 125, pin_memory=pin)
    Run(glove_net(), train, 1e-3, [LayerReport(), Accuracy(valid)]).fit(4)
