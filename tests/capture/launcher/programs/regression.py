"""House prices: targets from thousands to millions, scaled for training, told in the raw unit."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(14)
x = torch.randn(1500, 8)
price = torch.exp(11.5 + x @ torch.tensor([0.8, -0.5, 0.3, 0.2, 0.0, 0.1, 0.0, -0.2]))
log_price = price.log()
target = (log_price - log_price.mean()) / log_price.std()
loader = DataLoader(TensorDataset(x, target, price), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.SmoothL1Loss()
for epoch in range(12):
    error = 0.0
    for features, wanted, dollars in loader:
        out = model(features).squeeze(-1)
        loss = criterion(out, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            guess = (out * log_price.std() + log_price.mean()).exp()
            error += (guess - dollars).abs().mean().item()
    print(f"epoch {epoch} loss {loss.item()!r} error {error / len(loader):.2f}")
