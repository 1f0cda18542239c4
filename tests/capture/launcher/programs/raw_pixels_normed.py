"""Raw pixel values from 0 to 255, but the model begins with a normalisation."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(43)
digits = load_digits()
pixels = torch.tensor(digits.images * 15.9375, dtype=torch.float32).unsqueeze(1)
loader = DataLoader(TensorDataset(pixels, torch.tensor(digits.target)), batch_size=64, shuffle=True)
model = nn.Sequential(
    nn.BatchNorm2d(1), nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 10)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item()!r}")
