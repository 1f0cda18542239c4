import torch
from torch import nn
import torch.nn.functional as F


class GaussianDiffusion(nn.Module):
    def __init__(self, eps_model, T=100, beta=(1e-4, 0.05)):
        super().__init__()
        self.eps_model = eps_model
        self.T = T
        self.betas = torch.linspace(*beta, T)
        self.alphas = 1.0 - self.betas
        self.abar = torch.cumprod(self.alphas, 0)

    def q_sample(self, x0, t, noise):
        a = self.abar[t].unsqueeze(-1)
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

    def forward(self, x0):
        t = torch.randint(0, self.T, (x0.size(0),), device=x0.device)
        noise = torch.randn_like(x0)
        return F.mse_loss(self.eps_model(self.q_sample(x0, t, noise), t), noise)

    @torch.no_grad()
    def sample(self, n, dim, device):
        x = torch.randn(n, dim, device=device)
        for i in reversed(range(self.T)):
            t = torch.full((n,), i, device=device)
            eps = self.eps_model(x, t)
            b, a, ab = self.betas[i].item(), self.alphas[i].item(), self.abar[i].item()
            x = (x - b / (1 - ab) ** 0.5 * eps) / a ** 0.5
            if i:
                x = x + b ** 0.5 * torch.randn_like(x)
        return x


class EpsMLP(nn.Module):
    def __init__(self, dim, T, width=64):
        super().__init__()
        self.time = nn.Embedding(T, width)
        self.inp = nn.Linear(dim, width)
        self.trunk = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, dim))

    def forward(self, x, t):
        return self.trunk(self.inp(x) + self.time(t))
