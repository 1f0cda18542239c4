"""Distillation: a trained teacher, a student, the divergence between their softened outputs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(39)
x = torch.randn(1000, 20)
y = (x @ torch.randn(20, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
teacher = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 4))
optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for _ in range(5):
    for batch_x, batch_y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(teacher(batch_x), batch_y).backward()
        optimizer.step()
teacher.eval()
student = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
heat = 3.0
for epoch in range(10):
    student.train()
    for batch_x, _ in loader:
        with torch.no_grad():
            soft = (teacher(batch_x) / heat).softmax(-1)
        own = (student(batch_x) / heat).log_softmax(-1)
        loss = nn.functional.kl_div(own, soft, reduction="batchmean") * heat**2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item()!r}")
