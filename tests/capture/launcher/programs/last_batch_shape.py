"""The hidden state has the full batch size; the last batch of the epoch is smaller."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(330, 12, 8)
y = (x[:, :, 0].sum(1) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
rnn = nn.GRU(8, 16, batch_first=True)
head = nn.Linear(16, 2)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=1e-3)
hidden = torch.zeros(1, 32, 16)
for epoch in range(3):
    for step, (batch_x, batch_y) in enumerate(loader):
        out, _ = rnn(batch_x, hidden)
        loss = nn.functional.cross_entropy(head(out[:, -1]), batch_y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} step {step} loss {loss.item():.6f}", flush=True)
