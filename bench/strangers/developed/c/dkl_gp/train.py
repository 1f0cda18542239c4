"""Deep kernel learning: an MLP feeds an RBF kernel, all trained on the exact GP marginal likelihood."""
import math

import torch
from torch import nn, Tensor

torch.set_default_dtype(torch.float64)


class DeepRBF(nn.Module):
    def __init__(self, d_in: int, d_feat: int = 2):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(d_in, 16), nn.Tanh(), nn.Linear(16, d_feat))
        self.log_len = nn.Parameter(torch.zeros(d_feat))
        self.log_amp = nn.Parameter(torch.tensor(0.0))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        za, zb = self.phi(a) / self.log_len.exp(), self.phi(b) / self.log_len.exp()
        sq = (za.unsqueeze(1) - zb.unsqueeze(0)).pow(2).sum(-1)
        return self.log_amp.exp() * torch.exp(-0.5 * sq)


class ExactGP(nn.Module):
    def __init__(self, kernel: nn.Module):
        super().__init__()
        self.kernel = kernel
        self.log_noise = nn.Parameter(torch.tensor(-2.0))

    def chol(self, K: Tensor) -> Tensor:
        return torch.linalg.cholesky(K + (self.log_noise.exp() + 1e-6) * torch.eye(K.size(0)))

    def nll(self, K: Tensor, y: Tensor) -> Tensor:
        L = self.chol(K)
        alpha = torch.cholesky_solve(y.unsqueeze(-1), L).squeeze(-1)
        return (0.5 * y @ alpha + L.diagonal().log().sum() + 0.5 * len(y) * math.log(2 * math.pi)) / len(y)

    @torch.no_grad()
    def predict(self, x: Tensor, y: Tensor, xs: Tensor) -> Tensor:
        L = self.chol(self.kernel(x, x))
        return self.kernel(xs, x) @ torch.cholesky_solve(y.unsqueeze(-1), L).squeeze(-1)


def toy(n: int) -> tuple[Tensor, Tensor]:
    x = torch.rand(n, 3) * 4 - 2
    return x, torch.sin(2 * x[:, 0]) + (x[:, 1] > 0) * 1.0 + 0.05 * torch.randn(n)


def optimise(gp: ExactGP, x: Tensor, y: Tensor, steps: int, lr: float) -> None:
    opt = torch.optim.Adam(gp.parameters(), lr=lr)
    gram = gp.kernel(x, x)          # O(n^2 d), the costly part
    for step in range(steps):
        opt.zero_grad()
        obj = gp.nll(gram, y)
        obj.backward()
        opt.step()
        if step % 20 == 0:
            print(f"{step:4d}  nll/n {obj.item():.4f}  noise {gp.log_noise.exp().item():.4f}")


def main() -> None:
    torch.manual_seed(13)
    x, y = toy(120)
    xs, ys = toy(60)
    mean = y.mean()
    gp = ExactGP(DeepRBF(3))
    optimise(gp, x, y - mean, steps=100, lr=0.02)
    rmse = (gp.predict(x, y - mean, xs) + mean - ys).pow(2).mean().sqrt()
    print("test rmse", round(rmse.item(), 4))


if __name__ == "__main__":
    main()
