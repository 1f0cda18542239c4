"""Truncated backpropagation through time: the hidden state is detached between the pieces."""

import torch
from torch import nn

torch.manual_seed(35)
signal = torch.sin(torch.linspace(0, 200, 2001)) + 0.5 * torch.sin(torch.linspace(0, 77, 2001))
rows = signal[:2000].view(4, 500, 1)
wanted = signal[1:2001].view(4, 500, 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, num_layers=2, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x, state):
        out, state = self.lstm(x, state)
        return self.head(out), state


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    state = None
    for start in range(0, 500, 25):
        out, state = model(rows[:, start : start + 25], state)
        state = tuple(s.detach() for s in state)
        loss = nn.functional.mse_loss(out, wanted[:, start : start + 25])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item()!r}")
