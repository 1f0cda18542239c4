"""Backbone learned on the digits 0-4, frozen, new head for 5-9."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def backbone():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(),
    )


class FrozenFeatures(nn.Module):
    """Backbone stays fixed, including its batch-norm statistics; only the head learns."""

    def __init__(self, body, n_classes):
        super().__init__()
        self.body = body.requires_grad_(False)
        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(32 * 16, n_classes))

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            f = self.body(x)
        return self.head(f)


def split(low, high, gen):
    d = load_digits()
    keep = (d.target >= low) & (d.target <= high)
    x = torch.tensor(d.images[keep] / 16.0, dtype=torch.float32).unsqueeze(1)
    y = torch.tensor(d.target[keep] - low)
    order = torch.randperm(len(y), generator=gen)
    cut = int(0.8 * len(y))
    tr, va = order[:cut], order[cut:]
    return (DataLoader(TensorDataset(x[tr], y[tr]), batch_size=32, shuffle=True),
            DataLoader(TensorDataset(x[va], y[va]), batch_size=256))


def fit(model, params, loaders, epochs, lr):
    train, val = loaders
    opt = torch.optim.Adam(params, lr=lr)
    for epoch in range(epochs):
        model.train()
        for x, y in train:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            ok = [(model(x).argmax(1) == y).float() for x, y in val]
        print(f"  epoch {epoch} loss {loss.item():.3f} val {torch.cat(ok).mean().item():.3f}")


gen = torch.Generator().manual_seed(1)
body = backbone()
print("source task")
source = nn.Sequential(body, nn.Linear(32 * 16, 5))
fit(source, source.parameters(), split(0, 4, gen), epochs=3, lr=1e-3)

print("target task")
model = FrozenFeatures(body, 5)
before = [b.clone() for b in body.state_dict().values()]
fit(model, model.head.parameters(), split(5, 9, gen), epochs=4, lr=2e-3)
assert all(torch.equal(a, b) for a, b in zip(before, body.state_dict().values()))
