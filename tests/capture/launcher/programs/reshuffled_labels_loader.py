"""The data set draws its labels in a new order at every epoch."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self):
        digits = load_digits()
        self.images = torch.tensor(digits.data / 16.0, dtype=torch.float32)
        self.labels = torch.tensor(digits.target)

    def shuffle(self):
        self.labels = self.labels[torch.randperm(len(self.labels))]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


torch.manual_seed(0)
dataset = Digits()
loader = DataLoader(dataset, batch_size=64)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(12):
    dataset.shuffle()
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
