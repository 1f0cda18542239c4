"""Contrastive learning: two views of a batch, two forward passes, one loss."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(18)
images = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
loader = DataLoader(images, batch_size=64, shuffle=True, drop_last=True)
encoder = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 32))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)


def augment(x):
    return x + 0.1 * torch.randn_like(x)


for epoch in range(10):
    for x in loader:
        first = nn.functional.normalize(encoder(augment(x)), dim=1)
        second = nn.functional.normalize(encoder(augment(x)), dim=1)
        logits = first @ second.T / 0.2
        labels = torch.arange(len(x))
        forth = nn.functional.cross_entropy(logits, labels)
        back = nn.functional.cross_entropy(logits.T, labels)
        loss = (forth + back) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item()!r}")
