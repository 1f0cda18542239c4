"""VQ-VAE for short vibration snippets."""
from dataclasses import dataclass
import torch
import torch.nn.functional as F
from torch import nn
from quantizer import EMAQuantizer


@dataclass
class HP:
    codes: int = 32
    dim: int = 8
    width: int = 32
    beta: float = 0.25
    lr: float = 2e-3
    steps: int = 250
    batch: int = 64


class VQVAE(nn.Module):
    def __init__(self, hp):
        super().__init__()
        w = hp.width
        self.enc = nn.Sequential(nn.Conv1d(1, w, 4, 2, 1), nn.ReLU(), nn.Conv1d(w, w, 4, 2, 1), nn.ReLU(), nn.Conv1d(w, hp.dim, 1))
        self.vq = EMAQuantizer(hp.codes, hp.dim)
        self.dec = nn.Sequential(
            nn.ConvTranspose1d(hp.dim, w, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(w, w, 4, 2, 1), nn.ReLU(), nn.Conv1d(w, 1, 3, padding=1))

    def forward(self, x):
        q, commit, idx = self.vq(self.enc(x).transpose(1, 2))
        return self.dec(q.transpose(1, 2)), commit, idx


def snippets(n, gen, length=64):
    t = torch.arange(length) / length
    f = torch.randint(1, 6, (n, 1), generator=gen)
    ph = torch.rand(n, 1, generator=gen) * 6.28
    decay = torch.rand(n, 1, generator=gen) * 3
    return (torch.sin(6.28 * f * t + ph) * torch.exp(-decay * t) + 0.02 * torch.randn(n, length, generator=gen)).unsqueeze(1)


def main(hp=HP()):
    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(0)
    train, test = snippets(2000, gen), snippets(300, gen)
    net = VQVAE(hp)
    opt = torch.optim.Adam(net.parameters(), lr=hp.lr)      # the codebook is a buffer and moves by itself
    for step in range(1, hp.steps + 1):
        net.train()
        x = train[torch.randint(len(train), (hp.batch,), generator=gen)]
        rec, commit, _ = net(x)
        loss = F.mse_loss(rec, x) + hp.beta * commit
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 50 == 0:
            net.eval()
            with torch.no_grad():
                rec, _, idx = net(test)
                p = torch.bincount(idx.flatten(), minlength=hp.codes).float()
                p = p / p.sum()
                perplexity = torch.exp(-(p * (p + 1e-10).log()).sum())
            print(f"{step}: test mse {F.mse_loss(rec, test).item():.4f} codes in use {perplexity.item():.1f}")


if __name__ == "__main__":
    main()
