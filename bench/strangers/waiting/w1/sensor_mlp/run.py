import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(7)
rng = np.random.default_rng(7)

# pump telemetry: 12 channels, target = remaining hours / 100
N = 1400
X = rng.normal(size=(N, 12)).astype("float32")
w = rng.normal(size=(12,))
y = (np.tanh(X @ w * 0.4) + 0.3 * X[:, 0] * X[:, 1] + 0.05 * rng.normal(size=N)).astype("float32")

full = TensorDataset(torch.from_numpy(X), torch.from_numpy(y)[:, None])
train_set, valid_set = random_split(full, [1200, 200])

# the pump PC only has a 2 GB card, so small batches and a virtual batch of 2048
MICRO_BATCH = 32
VIRTUAL_BATCH = 2048
ACC = VIRTUAL_BATCH // MICRO_BATCH
EPOCHS = 15

train_loader = DataLoader(train_set, batch_size=MICRO_BATCH, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=200)


class RULNet(nn.Module):
    def __init__(self, n_in, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.body(x))


net = RULNet(12)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
huber = nn.HuberLoss()


def validate():
    net.eval()
    err = 0.0
    with torch.no_grad():
        for xb, yb in valid_loader:
            err += (net(xb) - yb).abs().sum().item()
    return err / len(valid_set)


for epoch in range(EPOCHS):
    net.train()
    opt.zero_grad()
    total = 0.0
    for i, (xb, yb) in enumerate(train_loader):
        loss = huber(net(xb), yb)
        (loss / ACC).backward()
        total += loss.item()
        if (i + 1) % ACC == 0:
            opt.step()
            opt.zero_grad()
    print(f"{epoch:02d}  train huber {total / len(train_loader):.4f}   valid MAE {validate():.4f}")

torch.save(net.state_dict(), "/tmp/rul.pt")
