"""Two losses, two backward passes over one graph, one step; a rate that falls on plateaus."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(45)
x = torch.randn(1000, 12)
y = torch.stack([x[:, :3].sum(1), x[:, 3:6].prod(1)], 1)
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(12, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU(), nn.Linear(64, 2))
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
for epoch in range(12):
    total = 0.0
    for batch_x, batch_y in loader:
        optimizer.zero_grad()
        out = model(batch_x)
        first = nn.functional.mse_loss(out[:, 0], batch_y[:, 0])
        second = nn.functional.huber_loss(out[:, 1], batch_y[:, 1])
        first.backward(retain_graph=True)
        second.backward()
        optimizer.step()
        total += first.item() + second.item()
    scheduler.step(total)
    print(f"epoch {epoch} loss {total / len(loader)!r} lr {optimizer.param_groups[0]['lr']!r}")
