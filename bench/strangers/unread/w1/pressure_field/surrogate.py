"""Surrogate for a 2-D pressure solve, half precision weights with fp32 master copies."""
import torch
import torch.nn.functional as F
from torch import nn, Tensor

GRID = 32


def sample_fields(n: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random smooth sources and the solution of -lap(p) = f with periodic walls."""
    k = torch.fft.fftfreq(GRID, 1.0 / GRID)
    k2 = k[:, None] ** 2 + k[None, :] ** 2
    noise = torch.randn(n, GRID, GRID, generator=g)
    f_hat = torch.fft.fft2(noise) * torch.exp(-k2 / 30)
    f_hat[:, 0, 0] = 0
    p_hat = f_hat / torch.where(k2 == 0, torch.ones_like(k2), k2)
    f, p = torch.fft.ifft2(f_hat).real, torch.fft.ifft2(p_hat).real
    return f.unsqueeze(1) / f.std(), p.unsqueeze(1) / p.std()


class Surrogate(nn.Module):
    def __init__(self, width: int = 16):
        super().__init__()
        self.inp = nn.Conv2d(1, width, 3, padding=1, padding_mode="circular")
        self.mid = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=d, dilation=d, padding_mode="circular") for d in (1, 2, 4)
        )
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, f: Tensor) -> Tensor:
        h = F.gelu(self.inp(f))
        for conv in self.mid:
            h = h + F.gelu(conv(h))
        return self.out(h)


def field_error(pred: Tensor, true: Tensor) -> Tensor:
    """Relative L2 error of the batch."""
    residual = pred - true
    return (residual.square().sum() / true.square().sum()).sqrt()


class MasterWeights:
    """Keeps fp32 copies, copies gradients up and values down."""

    def __init__(self, model: nn.Module, scale: float):
        self.low = list(model.parameters())
        self.high = [p.detach().float().clone().requires_grad_() for p in self.low]
        self.scale = scale

    def backward(self, loss: Tensor) -> None:
        (loss.float() * self.scale).backward()

    def pull_gradients(self) -> None:
        for h, l in zip(self.high, self.low):
            h.grad = l.grad.float() / self.scale
            l.grad = None

    def push_values(self) -> None:
        with torch.no_grad():
            for h, l in zip(self.high, self.low):
                l.copy_(h)


def main(steps: int = 24, batch: int = 96) -> None:
    torch.manual_seed(2)
    g = torch.Generator().manual_seed(2)
    f_train, p_train = sample_fields(256, g)
    f_test, p_test = sample_fields(64, g)
    model = Surrogate().half()
    master = MasterWeights(model, scale=2.0 ** 7)
    optim = torch.optim.Adam(master.high, lr=2e-3)
    for step in range(steps):
        idx = torch.randint(len(f_train), (batch,), generator=g)
        pred = model(f_train[idx].half())
        loss = field_error(pred, p_train[idx].half())
        master.backward(loss)
        master.pull_gradients()
        optim.step()
        master.push_values()
        if step % 4 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        rel = (model(f_test.half()).float() - p_test).norm() / p_test.norm()
    print(f"relative error {rel.item():.3f}")


if __name__ == "__main__":
    main()
