"""A student that learns from labels and from a teacher that is its own moving average."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)
x = torch.randn(1200, 20)
y = (x @ torch.randn(20, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
student = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4))
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
for epoch in range(10):
    for batch_x, batch_y in loader:
        logits = student(batch_x + 0.05 * torch.randn_like(batch_x))
        with torch.no_grad():
            soft = teacher(batch_x).softmax(-1)
        consistency = nn.functional.mse_loss(logits.softmax(-1), soft)
        loss = nn.functional.cross_entropy(logits, batch_y) + 0.5 * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, p in zip(teacher.parameters(), student.parameters(), strict=True):
                mean.mul_(0.99).add_(p, alpha=0.01)
    print(f"epoch {epoch} loss {loss.item()!r} consistency {consistency.item()!r}")
