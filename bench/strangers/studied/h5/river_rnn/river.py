# River level prediction with an LSTM. Gradients of RNNs explode, so every parameter gets a hook.
import numpy as np
import torch
import torch.nn as nn

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LIMIT = 0.5


def rainfall_runoff(T=2500, seed=0):
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.3, 2.0, T) * (rng.random(T) < 0.35)
    store, level = 0.0, np.zeros(T)
    for t in range(T):
        store = 0.93 * store + rain[t]
        level[t] = 0.08 * store + 0.01 * store ** 1.5
    return rain.astype(np.float32), (level + 0.02 * rng.standard_normal(T)).astype(np.float32)


rain, level = rainfall_runoff()
level = (level - level.mean()) / level.std()
rain = rain / rain.std()
W = 30
X = np.stack([np.stack([rain[i:i + W], level[i:i + W]], -1) for i in range(len(rain) - W)])
Y = level[W:]
X, Y = torch.tensor(X).to(DEVICE), torch.tensor(Y).to(DEVICE)
n_train = 1800


class RiverNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1]).squeeze(-1)


def protect(module, limit):
    for p in module.parameters():
        p.register_hook(lambda g: g.clamp(-limit, limit))
    return module


torch.manual_seed(0)
net = protect(RiverNet().to(DEVICE), LIMIT)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler(DEVICE.type)
mse = nn.MSELoss()

for epoch in range(5):
    net.train()
    losses = []
    for idx in torch.randperm(n_train).split(60):
        opt.zero_grad()
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            pred = net(X[idx])
        loss = mse(pred.float(), Y[idx])
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        p = net(X[n_train:])
        nse = 1 - ((p - Y[n_train:]) ** 2).sum() / ((Y[n_train:] - Y[n_train:].mean()) ** 2).sum()
    print(f"epoch {epoch}: train mse {np.mean(losses):.4f}, test NSE {nse.item():.3f}")
