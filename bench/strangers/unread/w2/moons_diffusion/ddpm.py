"""DDPM on two moons with loss-aware timestep sampling (Improved DDPM, eq. 18)."""
import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import nn

T = 50
torch.manual_seed(0)
rng = np.random.default_rng(0)

betas = torch.linspace(1e-4, 0.08, T)
abar = torch.cumprod(1 - betas, 0)


class LossAwareSampler:
    """Draws t with probability proportional to sqrt(E[L_t^2]) once every t has enough history."""

    def __init__(self, steps, window=10):
        self.steps, self.window = steps, window
        self.losses = {t: [] for t in range(steps)}

    def ready(self):
        return all(len(v) >= self.window for v in self.losses.values())

    def weights(self):
        if not self.ready():
            return np.full(self.steps, 1.0 / self.steps)
        w = np.array([
            np.sqrt(np.mean([float(l) ** 2 for l in v[-self.window:]])) for v in self.losses.values()
        ])
        w = w / w.sum()
        return 0.999 * w + 0.001 / self.steps

    def draw(self, n):
        p = self.weights()
        t = rng.choice(self.steps, size=n, p=p)
        return torch.from_numpy(t), torch.from_numpy(1.0 / (self.steps * p[t])).float()

    def record(self, ts, losses):
        for t, l in zip(ts.tolist(), losses):
            self.losses[t].append(l)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.time = nn.Embedding(T, width)
        self.inp = nn.Linear(2, width)
        self.mid = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        return self.out(self.mid(self.inp(x) + self.time(t)))


points, _ = make_moons(2000, noise=0.05, random_state=0)
points = torch.from_numpy((points - points.mean(0)) / points.std(0)).float()

model = Denoiser()
sampler = LossAwareSampler(T)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(600):
    x0 = points[torch.randint(len(points), (128,))]
    t, weight = sampler.draw(128)
    eps = torch.randn_like(x0)
    a = abar[t].unsqueeze(1)
    xt = a.sqrt() * x0 + (1 - a).sqrt() * eps
    per_example = (model(xt, t) - eps).pow(2).mean(1)
    loss = (weight * per_example).mean()

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    sampler.record(t, per_example)

    if step % 100 == 0:
        print(f"step {step:4d} loss {loss.item():.4f} adaptive {sampler.ready()}")


@torch.no_grad()
def generate(n):
    x = torch.randn(n, 2)
    for k in reversed(range(T)):
        e = model(x, torch.full((n,), k))
        x = (x - betas[k] / (1 - abar[k]).sqrt() * e) / (1 - betas[k]).sqrt()
        if k:
            x = x + betas[k].sqrt() * torch.randn_like(x)
    return x


model.eval()
s = generate(1000)
print("sample mean", s.mean(0).tolist(), "std", s.std(0).tolist())
