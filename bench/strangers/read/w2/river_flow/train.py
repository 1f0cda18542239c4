"""River discharge regression; large virtual batches on a small machine."""
import torch
from torch import nn

torch.manual_seed(14)
MICRO, PER_UPDATE, EPOCHS = 24, 6, 12


def basins(n, seed):
    g = torch.Generator().manual_seed(seed)
    rain = torch.rand(n, 14, generator=g) ** 3 * 10
    slope = torch.rand(n, 1, generator=g)
    decay = torch.exp(-torch.arange(14.0) * 0.3).flip(0)
    flow = (rain * decay).sum(1, keepdim=True) * (0.5 + slope) + 0.1 * torch.randn(n, 1, generator=g)
    return torch.cat([rain, slope], 1), flow


x_all, y_all = basins(1000, 1)
x_val, y_val = basins(250, 2)
mu, sd = x_all.mean(0), x_all.std(0)
ymu, ysd = y_all.mean(), y_all.std()
x_all, x_val = (x_all - mu) / sd, (x_val - mu) / sd
t_all = (y_all - ymu) / ysd

model = nn.Sequential(nn.Linear(15, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)

for epoch in range(EPOCHS):
    model.train()
    micros = list(torch.randperm(len(x_all)).split(MICRO))
    seen = 0.0
    for start in range(0, len(micros), PER_UPDATE):
        group = micros[start:start + PER_UPDATE]
        n_group = sum(len(m) for m in group)
        opt.zero_grad()
        for m in group:
            sq = (model(x_all[m]) - t_all[m]).pow(2).sum()
            (sq / n_group).backward()
            seen += sq.item()
        opt.step()
    model.eval()
    with torch.no_grad():
        pred = model(x_val) * ysd + ymu
        nse = 1 - (pred - y_val).pow(2).sum() / (y_val - y_val.mean()).pow(2).sum()
    print(f"epoch {epoch:2d} mse {seen / len(x_all):.4f} val NSE {nse.item():.4f}")
