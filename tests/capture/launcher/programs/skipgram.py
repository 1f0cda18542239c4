"""Word vectors: the same centre word comes with many different neighbours, and that is the point."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(30)
words, groups = 100, 10
centre = torch.randint(0, words, (3000,))
context = centre // groups * groups + torch.randint(0, groups, (3000,))
loader = DataLoader(TensorDataset(centre, context), batch_size=100, shuffle=True)
model = nn.Sequential(nn.Embedding(words, 16), nn.Linear(16, words))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(12):
    total = 0.0
    for word, neighbour in loader:
        loss = nn.functional.cross_entropy(model(word), neighbour)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader)!r}")
