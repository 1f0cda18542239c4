import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Dropout(p),
                               nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(p), nn.Linear(64, 1))

    def forward(self, x):
        return self.f(x)


def toy(n, seed):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(-3, -0.5, n // 2), rng.uniform(0.5, 3, n - n // 2)])
    y = np.sin(2 * x) + 0.3 * x + rng.normal(0, 0.1, n)
    return torch.tensor(x, dtype=torch.float32)[:, None], torch.tensor(y, dtype=torch.float32)[:, None]


def dropout_on(model):
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()


@torch.no_grad()
def mc_predict(model, x, n_samples=30):
    dropout_on(model)
    draws = torch.stack([model(x) for _ in range(n_samples)])
    return draws.mean(0), draws.std(0)


torch.manual_seed(1)
x_train, y_train = toy(600, 0)
x_val, y_val = toy(200, 1)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3, factor=0.5)

for epoch in range(30):
    net.train()
    for idx in torch.randperm(len(x_train)).split(50):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x_train[idx]), y_train[idx]).backward()
        optimizer.step()
    mean, std = mc_predict(net, x_val)
    val = nn.functional.mse_loss(mean, y_val).item()
    sched.step(val)
    if epoch % 6 == 5:
        print(f"epoch {epoch + 1}: val mse of the MC mean {val:.4f}, mean std {std.mean():.3f}")

grid = torch.tensor([[-6.0], [-2.0], [0.0], [2.0], [6.0]])
mean, std = mc_predict(net, grid, 200)
for g, m, s in zip(grid.flatten().tolist(), mean.flatten().tolist(), std.flatten().tolist()):
    print(f"x={g:+.1f}  prediction {m:+.2f} +- {s:.2f}")
