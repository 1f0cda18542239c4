"""SimSiam: one side of the loss is detached, nothing is labelled."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(37)
images = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True, drop_last=True)
encoder = nn.Sequential(
    nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.BatchNorm1d(32)
)
predictor = nn.Sequential(nn.Linear(32, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 32))
parameters = [*encoder.parameters(), *predictor.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)


def distance(p, z):
    return -nn.functional.cosine_similarity(p, z.detach(), dim=-1).mean()


for epoch in range(8):
    for (x,) in loader:
        z1 = encoder(x + 0.2 * torch.randn_like(x))
        z2 = encoder(x + 0.2 * torch.randn_like(x))
        loss = 0.5 * (distance(predictor(z1), z2) + distance(predictor(z2), z1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item()!r}")
