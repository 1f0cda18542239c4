"""LISTA: unrolled sparse coding with a fused shrinkage operator."""
import torch
from torch import nn
from torch.autograd import Function


class Shrink(Function):
    """sign(u) * max(|u| - theta, 0) with one threshold per coefficient."""

    @staticmethod
    def forward(ctx, u, theta):
        active = u.abs() > theta
        ctx.save_for_backward(u, active)
        return torch.where(active, u - theta * u.sign(), torch.zeros_like(u))

    @staticmethod
    def backward(ctx, grad):
        u, active = ctx.saved_tensors
        grad_u = grad * active
        grad_theta = (grad * u.sign() * active).sum(0)
        return grad_u, grad_theta


class LISTA(nn.Module):
    def __init__(self, dictionary, layers=6, theta0=0.05):
        super().__init__()
        m, n = dictionary.shape
        lip = torch.linalg.matrix_norm(dictionary, 2) ** 2
        self.encode = nn.Linear(m, n, bias=False)
        self.recur = nn.Linear(n, n, bias=False)
        self.encode.weight.data = dictionary.T / lip
        self.recur.weight.data = torch.eye(n) - dictionary.T @ dictionary / lip
        self.theta = nn.ParameterList([nn.Parameter(torch.full((n,), theta0)) for _ in range(layers)])

    def forward(self, y):
        drive = self.encode(y)
        z = torch.zeros_like(drive)
        for theta in self.theta:
            z = Shrink.apply(drive + self.recur(z), theta)
        return z


def problem(dictionary, count, k, g):
    n = dictionary.shape[1]
    support = torch.rand(count, n, generator=g).argsort(1) < k
    code = torch.randn(count, n, generator=g) * support
    y = code @ dictionary.T
    return y + 0.01 * torch.randn(y.shape, generator=g), code


def nmse(est, ref):
    return 10 * torch.log10((est - ref).square().sum() / ref.square().sum())


def main():
    torch.manual_seed(6)
    g = torch.Generator().manual_seed(6)
    dictionary = nn.functional.normalize(torch.randn(30, 60, generator=g), dim=0)
    y_tr, z_tr = problem(dictionary, 4000, 4, g)
    y_va, z_va = problem(dictionary, 500, 4, g)
    net = LISTA(dictionary)
    opt = torch.optim.Adam([
        {"params": [net.encode.weight, net.recur.weight], "lr": 1e-3},
        {"params": net.theta.parameters(), "lr": 1e-2},
    ])
    for epoch in range(8):
        net.train()
        for idx in torch.randperm(len(y_tr)).split(100):
            loss = (net(y_tr[idx]) - z_tr[idx]).square().sum(1).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            db = nmse(net(y_va), z_va).item()
        print(f"epoch {epoch} loss {loss.item():.4f} NMSE {db:.2f} dB theta {net.theta[0].mean().item():.3f}")


if __name__ == "__main__":
    main()
