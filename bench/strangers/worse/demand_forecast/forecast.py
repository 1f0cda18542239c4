"""One-step-ahead forecast of a noisy demand series."""
import numpy as np
import torch
from torch import nn

SEED = 0
WINDOW = 16
BATCH = 64
EPOCHS = 12
LEARNING_RATE = 4e-3
WEIGHT_DECAY = 1e-4


def demand(n=9000):
    rng = np.random.default_rng(13)
    s = np.zeros(n)
    e = rng.normal(size=n)
    for t in range(2, n):
        s[t] = 1.2 * s[t - 1] - 0.5 * s[t - 2] + e[t]
    s = (s - s[:7000].mean()) / s[:7000].std()
    w = np.lib.stride_tricks.sliding_window_view(s, WINDOW + 1).copy()
    return torch.tensor(w, dtype=torch.float32)


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x.unsqueeze(-1))
        return self.out(h[:, -1]).squeeze(-1)


def main():
    torch.manual_seed(SEED)
    w = demand()
    train, test = w[:7000:2], w[7000 + WINDOW:]
    model = Forecaster()
    opt = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    per_epoch = -(-len(train) // BATCH)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS * per_epoch)
    mse = nn.MSELoss()
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for idx in torch.randperm(len(train)).split(BATCH):
            b = train[idx]
            loss = mse(model(b[:, :-1]), b[:, -1])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            losses.append(loss.item())
        with torch.no_grad():
            test_mse = mse(model(test[:, :-1]), test[:, -1]).item()
        print(f"epoch {epoch:2d}: train mse {np.mean(losses):.4f}, test mse {test_mse:.4f}")


if __name__ == "__main__":
    main()
