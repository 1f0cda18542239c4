"""Stateful LSTM for household load; the state runs on through consecutive windows (as with stateful=True in Keras)."""
import torch
import torch.nn as nn

torch.manual_seed(0)
BATCH, STEPS, HID = 8, 24, 32


def household(n_series, length, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(length).float()
    phase = 6.28 * torch.rand(n_series, 1, generator=g)
    slow = torch.sin(2 * torch.pi * t / 168 + phase)
    day = torch.sin(2 * torch.pi * t / 24 + phase)
    return day * (1 + 0.5 * slow) + 0.1 * torch.randn(n_series, length, generator=g)


class StatefulLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, HID, num_layers=2, batch_first=True)
        self.fc = nn.Linear(HID, 1)
        self.state = None

    def forward(self, x):
        y, state = self.lstm(x, self.state)
        self.state = tuple(s.detach() for s in state)
        return self.fc(y)

    def reset_states(self):
        self.state = None


def chunks(series):
    """in time order on purpose, the state depends on it"""
    for i in range(0, series.size(1) - STEPS - 1, STEPS):
        yield series[:, i:i + STEPS, None], series[:, i + 1:i + STEPS + 1, None]


train, val = household(BATCH, 1500, 0), household(BATCH, 400, 1)
model = StatefulLSTM()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
mse = nn.MSELoss()

for epoch in range(8):
    model.train()
    model.reset_states()
    total, n = torch.zeros(()), 0
    for x, y in chunks(train):
        loss = mse(model(x), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        total += loss.detach()
        n += 1

    model.eval()
    model.reset_states()
    with torch.no_grad():
        errors = [mse(model(x), y) for x, y in chunks(val)]
    print(f"epoch {epoch} train {total.item() / n:.4f} val {torch.stack(errors).mean().item():.4f}")
