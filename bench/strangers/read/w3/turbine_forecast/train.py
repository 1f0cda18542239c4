import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description="12h-ahead power forecast for one wind turbine")
parser.add_argument("--context", type=int, default=48)
parser.add_argument("--horizon", type=int, default=12)
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--micro-batch", type=int, default=16)
parser.add_argument("--effective-batch", type=int, default=1024)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--seed", type=int, default=11)


class Windows(Dataset):
    def __init__(self, series, context, horizon):
        self.series = torch.as_tensor(series, dtype=torch.float32)
        self.context, self.horizon = context, horizon

    def __len__(self):
        return len(self.series) - self.context - self.horizon + 1

    def __getitem__(self, i):
        mid = i + self.context
        return self.series[i:mid], self.series[mid:mid + self.horizon]


class Forecaster(nn.Module):
    def __init__(self, hidden, horizon):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, horizon)

    def forward(self, x):
        _, h = self.rnn(x.unsqueeze(-1))
        return x[:, -1:] + self.out(h[-1])


def synth(n, rng):
    t = np.arange(n)
    wind = 8 + 3 * np.sin(2 * np.pi * t / 24) + 1.5 * np.sin(2 * np.pi * t / 170) + rng.normal(0, 0.4, n)
    return np.clip(wind, 3, 13) ** 3 / 13**3


def main():
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    power = synth(1100, np.random.default_rng(args.seed))
    cut = 800
    mean, std = power[:cut].mean(), power[:cut].std()
    power = (power - mean) / std
    train_dl = DataLoader(Windows(power[:cut], args.context, args.horizon), batch_size=args.micro_batch, shuffle=True)
    val_dl = DataLoader(Windows(power[cut:], args.context, args.horizon), batch_size=128)

    model = Forecaster(args.hidden, args.horizon)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loss_fn = nn.MSELoss()
    accumulate = args.effective_batch // args.micro_batch

    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        seen, total = 0, 0.0
        for i, (past, future) in enumerate(train_dl, start=1):
            loss = loss_fn(model(past), future)
            (loss / accumulate).backward()
            if i % accumulate == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            total += loss.item() * len(past)
            seen += len(past)

        model.eval()
        err, count = 0.0, 0
        with torch.no_grad():
            for past, future in val_dl:
                err += (model(past) - future).abs().sum().item()
                count += future.numel()
        print(f"epoch {epoch} train mse {total / seen:.4f} val mae {err / count * std:.4f}")


if __name__ == "__main__":
    main()
