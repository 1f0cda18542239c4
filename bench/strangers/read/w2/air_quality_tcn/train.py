"""Hour-by-hour air quality class from weather series with a small TCN."""
import torch
from torch import nn

from losses import sequence_cross_entropy

torch.manual_seed(6)


class CausalBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.conv = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(torch.relu(self.conv(self.pad(x))))


class TCN(nn.Module):
    def __init__(self, n_features, n_classes, channels=32):
        super().__init__()
        self.embed = nn.Conv1d(n_features, channels, 1)
        self.blocks = nn.Sequential(*[CausalBlock(channels, 2 ** i) for i in range(4)])
        self.head = nn.Conv1d(channels, n_classes, 1)

    def forward(self, x):
        h = self.embed(x.transpose(1, 2))
        return self.head(self.blocks(h)).transpose(1, 2)


def weather(n, length, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, length, 5, generator=g).cumsum(1) / length ** 0.5
    load = torch.zeros(n)
    level = []
    for t in range(length):
        load = 0.9 * load + 0.3 * x[:, t, 0].relu() - 0.1 * x[:, t, 1]
        level.append(load)
    level = torch.stack(level, 1)
    return x, torch.bucketize(level, torch.tensor([-0.2, 0.3]))


train_x, train_y = weather(320, 48, 1)
val_x, val_y = weather(80, 48, 2)
model = TCN(5, 3)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)

for epoch in range(4):
    model.train()
    for idx in torch.randperm(len(train_x)).split(32):
        opt.zero_grad()
        loss = sequence_cross_entropy(model(train_x[idx]), train_y[idx], smoothing=0.05)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        logits = model(val_x)
        val = sequence_cross_entropy(logits, val_y)
        acc = (logits.argmax(-1) == val_y).float().mean()
    print(f"epoch {epoch} loss {loss.item():.3f} val {val.item():.3f} acc {acc.item():.3f}")
