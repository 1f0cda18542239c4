# %% imports
import math
import torch
import torch.nn as nn
import numpy as np

torch.manual_seed(1)
np.random.seed(1)
dev = "cuda" if torch.cuda.is_available() else "cpu"

# %% synthetic tones: 4 classes of little melodies, 512 samples each
def make_clip(label):
    t = np.arange(512) / 512
    f0 = np.random.uniform(10, 16)
    if label == 0:
        freq = f0 * np.ones_like(t)
    elif label == 1:
        freq = f0 * (1 + t)
    elif label == 2:
        freq = f0 * (2 - t)
    else:
        freq = f0 * (1 + 0.5 * np.sin(6 * math.pi * t))
    phase = 2 * math.pi * np.cumsum(freq) / 512
    return np.sin(phase + np.random.uniform(0, 6)) + 0.3 * np.random.randn(512)

labels = np.random.randint(0, 4, 1200)
clips = np.stack([make_clip(k) for k in labels]).astype(np.float32)
spec = torch.stft(torch.from_numpy(clips), 64, 16, window=torch.hann_window(64), return_complex=True).abs()
spec = torch.log1p(spec).unsqueeze(1)
y = torch.from_numpy(labels)
train_x, test_x = spec[:1000].to(dev), spec[1000:].to(dev)
train_y, test_y = y[:1000].to(dev), y[1000:].to(dev)
print("spectrograms", tuple(spec.shape))

# %% backbone and a little tool to grab features from any layer
class ConvBody(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1 = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.block2 = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.block3 = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())

    def forward(self, x):
        return self.block3(self.block2(self.block1(x)))


class LayerTap:
    """Collects the output of named layers while the network runs."""

    def __init__(self, net, names):
        self.store = {}
        for name, mod in net.named_modules():
            if name in names:
                mod.register_forward_hook(self._make(name))

    def _make(self, name):
        def hook(module, args, output):
            self.store[name] = output.detach()
        return hook


class ToneClassifier(nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.body = ConvBody()
        self.tap = LayerTap(self.body, {"block2", "block3"})
        self.fc = nn.Linear(32, n_classes)

    def forward(self, x):
        self.body(x)
        mid = self.tap.store["block2"].mean(dim=(2, 3))
        top = self.tap.store["block3"].mean(dim=(2, 3))
        return self.fc(torch.cat([mid, top], dim=1))


# %% training
net = ToneClassifier().to(dev)
criterion = nn.CrossEntropyLoss()
optim = torch.optim.AdamW(net.parameters(), lr=2e-3)
hist = []
for epoch in range(8):
    net.train()
    order = torch.randperm(len(train_x))
    tot = 0.0
    for i in range(0, len(order), 50):
        pick = order[i:i + 50]
        optim.zero_grad()
        out = net(train_x[pick])
        loss = criterion(out, train_y[pick])
        loss.backward()
        optim.step()
        tot += loss.item() * len(pick)
    net.eval()
    with torch.no_grad():
        acc = (net(test_x).argmax(1) == test_y).float().mean().item()
    hist.append((tot / len(order), acc))
    print(f"epoch {epoch + 1}: loss {hist[-1][0]:.4f}  test acc {acc:.3f}")

# %% summary
best = max(h[1] for h in hist)
print("best accuracy", round(best, 3))
