"""Transfer to a small second task: frozen conv features (statistics included), new head."""
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
y = torch.tensor(y)
src, dst = torch.where(y < 6)[0], torch.where(y >= 6)[0]


class Features(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten())


class Probe(nn.Module):
    def __init__(self, features, n_out):
        super().__init__()
        self.features = features
        for p in self.features.parameters():
            p.requires_grad_(False)
        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(512, n_out))

    def train(self, mode=True):
        super().train(mode)
        self.features.eval()    # running statistics belong to the source task
        return self

    def forward(self, x):
        with torch.no_grad():
            z = self.features(x)
        return self.head(z)


def loaders(idx, offset):
    a, b = train_test_split(idx.numpy(), test_size=0.25, random_state=0, stratify=y[idx])
    mk = lambda i, s: DataLoader(TensorDataset(X[i], y[i] - offset), 32, shuffle=s)
    return mk(a, True), mk(b, False)


def fit(model, params, tr, va, epochs, tag):
    opt = torch.optim.Adam(params, lr=2e-3)
    for ep in range(epochs):
        model.train()
        for xb, yb in tr:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.inference_mode():
            ok = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in va)
        print(f"{tag} {ep} loss {loss.item():.3f} val acc {ok / len(va.dataset):.3f}")


feat = Features()
base = nn.Sequential(feat, nn.Linear(512, 6))
fit(base, base.parameters(), *loaders(src, 0), 4, "source")
probe = Probe(feat, 4)
fit(probe, [p for p in probe.parameters() if p.requires_grad], *loaders(dst, 6), 6, "probe")
