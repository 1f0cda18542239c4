import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def vibration(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, 64)
    y = torch.randint(4, (n,), generator=g)
    base = torch.sin(2 * torch.pi * (3 + 2 * y[:, None]) * t + 6.28 * torch.rand(n, 1, generator=g))
    wear = (y[:, None] % 2) * 0.5 * torch.sin(2 * torch.pi * 20 * t)
    return TensorDataset(base + wear + 0.8 * torch.randn(n, 64, generator=g), y)


def big():
    return nn.Sequential(nn.Unflatten(1, (1, 64)), nn.Conv1d(1, 32, 9, padding=4), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(2),
                         nn.Conv1d(32, 32, 9, padding=4), nn.BatchNorm1d(32), nn.ReLU(), nn.AdaptiveMaxPool1d(4),
                         nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, 4))


def small():
    return nn.Sequential(nn.Unflatten(1, (1, 64)), nn.Conv1d(1, 6, 9, stride=2), nn.ReLU(), nn.AdaptiveMaxPool1d(4), nn.Flatten(),
                         nn.Linear(24, 4))


class Fitting:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def loss(self, x, y):
        return F.cross_entropy(self.model(x), y)

    def epoch(self, loader):
        self.model.train()
        history = []
        for x, y in loader:
            loss = self.loss(x, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            history.append(loss.detach())
        return torch.stack(history).mean().item()

    @torch.inference_mode()
    def accuracy(self, loader):
        self.model.eval()
        return sum((self.model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


class Distilling(Fitting):
    def __init__(self, model, teacher, lr, temperature=3.0, share=0.7):
        super().__init__(model, lr)
        self._teacher = [teacher.eval()]
        self.temperature, self.share = temperature, share

    def loss(self, x, y):
        with torch.no_grad():
            soft = F.log_softmax(self._teacher[0](x) / self.temperature, dim=1)
        out = self.model(x)
        imitation = F.kl_div(F.log_softmax(out / self.temperature, dim=1), soft, reduction="batchmean", log_target=True)
        return self.share * self.temperature**2 * imitation + (1 - self.share) * F.cross_entropy(out, y)


def main():
    torch.manual_seed(20)
    train, test = DataLoader(vibration(800, 1), 40, shuffle=True), DataLoader(vibration(300, 2), 100)
    first = Fitting(big(), 2e-3)
    for e in range(5):
        print(f"teacher {e} loss {first.epoch(train):.3f} accuracy {first.accuracy(test):.3f}")
    second = Distilling(small(), first.model, 5e-3)
    for e in range(8):
        print(f"student {e} loss {second.epoch(train):.3f} accuracy {second.accuracy(test):.3f}")


if __name__ == "__main__":
    main()
