import torch
from torch import nn
from torch.utils.data import DataLoader

from quantizer import EmaQuantizer


def signals(n, seed, length=32):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, length)
    f = torch.randint(1, 5, (n, 1), generator=g)
    p = torch.rand(n, 1, generator=g)
    return torch.sin(6.283 * (f * t + p)) + 0.05 * torch.randn(n, length, generator=g)


class VQVAE(nn.Module):
    def __init__(self, dim=8, codes=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv1d(16, dim, 4, 2, 1))
        self.vq = EmaQuantizer(codes, dim)
        self.dec = nn.Sequential(
            nn.ConvTranspose1d(dim, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(16, 1, 4, 2, 1)
        )

    def forward(self, x):
        z = self.enc(x[:, None]).transpose(1, 2)
        q, commit, idx = self.vq(z)
        return self.dec(q.transpose(1, 2)).squeeze(1), commit, idx


def perplexity(idx, n):
    p = torch.bincount(idx, minlength=n).float() / len(idx)
    return (-(p * (p + 1e-10).log()).sum()).exp().item()


def main():
    torch.manual_seed(26)
    net = VQVAE()
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    train = DataLoader(signals(800, 1), 50, shuffle=True)
    held = signals(200, 2)
    for epoch in range(8):
        net.train()
        for x in train:
            y, commit, _ = net(x)
            loss = (y - x).square().mean() + 0.25 * commit
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            y, _, idx = net(held)
            print(f"{epoch}: held-out mse {(y - held).square().mean():.4f} code perplexity {perplexity(idx, 32):.1f}")


if __name__ == "__main__":
    main()
