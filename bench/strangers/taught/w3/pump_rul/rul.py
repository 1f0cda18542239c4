# remaining useful life of pumps, GRU on vibration windows. I mostly do numpy / C, so no DataLoader here.
import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
WIN = 20


def simulate(n_pumps):
    xs, ys = [], []
    for _ in range(n_pumps):
        life = rng.integers(60, 120)
        t = np.arange(life)
        wear = (t / life) ** 2
        sig = np.stack([wear + 0.1 * rng.standard_normal(life),
                        np.sin(t / 5) * (1 + wear) + 0.1 * rng.standard_normal(life)], 1)
        for s in range(0, life - WIN, 4):
            xs.append(sig[s:s + WIN])
            ys.append((life - s - WIN) / 100.0)
    return np.asarray(xs, np.float32), np.asarray(ys, np.float32)


def batches(x, y, size, shuffle):
    idx = rng.permutation(len(x)) if shuffle else np.arange(len(x))
    for s in range(0, len(x), size):
        j = idx[s:s + size]
        yield torch.from_numpy(x[j]), torch.from_numpy(y[j])


class GRUReg(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 24, batch_first=True)
        self.fc = nn.Linear(24, 1)

    def forward(self, x):
        h, _ = self.gru(x)
        return self.fc(h[:, -1]).squeeze(-1)


x_train, y_train = simulate(40)
x_val, y_val = simulate(10)
mu, sd = x_train.mean((0, 1)), x_train.std((0, 1))
x_train, x_val = (x_train - mu) / sd, (x_val - mu) / sd

# validation stays in its original order
val_batches = batches(x_val, y_val, 64, shuffle=False)

net = GRUReg()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
mse = nn.MSELoss()
history = []
for ep in range(10):
    net.train()
    tl = []
    for xb, yb in batches(x_train, y_train, 64, shuffle=True):
        opt.zero_grad()
        loss = mse(net(xb), yb)
        loss.backward()
        opt.step()
        tl.append(loss.item())

    net.eval()
    sq, n = 0.0, 1e-9
    with torch.no_grad():
        for xb, yb in val_batches:
            sq += ((net(xb) - yb) ** 2).sum().item()
            n += len(yb)
    rmse = (sq / n) ** 0.5
    history.append(rmse)
    print("epoch", ep, "train mse %.4f" % np.mean(tl), "val rmse %.4f" % rmse)

print("best epoch", int(np.argmin(history)), "val rmse", min(history))
torch.save(net.state_dict(), "/tmp/w3_pump_rul.pt")
