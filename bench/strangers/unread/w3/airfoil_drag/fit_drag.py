import yaml
import numpy as np
import torch
from torch import nn

SPEC = """
data: {samples: 2000, val: 400, noise: 0.01}
net: {width: 128, hidden_layers: 4, init_std: 0.05}
opt: {lr: 0.001, epochs: 8, batch: 100}
seed: 4
"""


def drag(rng, n, noise):
    alpha = rng.uniform(-8, 14, n)
    reynolds = rng.uniform(4.5, 7.0, n)
    thickness = rng.uniform(0.06, 0.2, n)
    mach = rng.uniform(0.1, 0.6, n)
    cd = 0.006 + 0.09 * thickness**2 + 4e-4 * (alpha - 2) ** 2 / (1 - mach**2) ** 0.5 + 0.03 / reynolds
    x = np.stack([alpha, reynolds, thickness, mach], 1)
    return x, cd * (1 + noise * rng.standard_normal(n))


class DragNet(nn.Module):
    def __init__(self, width, hidden_layers, init_std):
        super().__init__()
        self.init_std = init_std
        sizes = [4] + [width] * hidden_layers
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.out = nn.Linear(width, 1)
        self.apply(self._reset)

    def _reset(self, m):
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, self.init_std)
            nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


def main():
    spec = yaml.safe_load(SPEC)
    torch.manual_seed(spec["seed"])
    rng = np.random.default_rng(spec["seed"])
    d, o = spec["data"], spec["opt"]
    x, y = drag(rng, d["samples"], d["noise"])
    k = d["samples"] - d["val"]
    mx, sx, my, sy = x[:k].mean(0), x[:k].std(0), y[:k].mean(), y[:k].std()
    x = torch.tensor((x - mx) / sx, dtype=torch.float32)
    y = torch.tensor((y - my) / sy, dtype=torch.float32)
    net = DragNet(**spec["net"])
    adam = torch.optim.Adam(net.parameters(), lr=o["lr"])
    mse = nn.MSELoss()
    for epoch in range(o["epochs"]):
        net.train()
        losses = []
        for ids in torch.randperm(k).split(o["batch"]):
            loss = mse(net(x[ids]), y[ids])
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
        net.eval()
        with torch.no_grad():
            val = mse(net(x[k:]), y[k:]).item()
        print(f"epoch {epoch}  train {np.mean(losses):.4g}  val {val:.4g}")


if __name__ == "__main__":
    main()
