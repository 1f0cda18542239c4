"""Pair potential network: total energy of small clusters from interatomic distances."""
import torch
import torch.nn as nn


class RadialBasis(nn.Module):
    def __init__(self, n=16, cutoff=4.0):
        super().__init__()
        self.register_buffer("mu", torch.linspace(0.5, cutoff, n))
        self.gamma = (n / cutoff) ** 2
        self.cutoff = cutoff

    def forward(self, d):
        envelope = 0.5 * (torch.cos(torch.pi * d.clamp(max=self.cutoff) / self.cutoff) + 1)
        return torch.exp(-self.gamma * (d.unsqueeze(-1) - self.mu) ** 2) * envelope.unsqueeze(-1)


class PairNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rbf = RadialBasis()
        self.anisotropy = nn.Parameter(torch.zeros(3))
        self.mlp = nn.Sequential(nn.Linear(16, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 1))

    def distances(self, pos):
        delta = pos.unsqueeze(2) - pos.unsqueeze(1)
        delta = delta * torch.exp(self.anisotropy)
        return delta.pow(2).sum(-1).sqrt()

    def forward(self, pos):
        d = self.distances(pos)
        n = pos.shape[1]
        off_diagonal = ~torch.eye(n, dtype=torch.bool, device=pos.device)
        pair = self.mlp(self.rbf(d)).squeeze(-1)
        return 0.5 * (pair * off_diagonal).sum((1, 2))


def clusters(count, n, g):
    lattice = torch.stack(torch.meshgrid(*[torch.arange(2.0)] * 3, indexing="ij"), -1).reshape(-1, 3)[:n]
    pos = 1.2 * lattice + 0.1 * torch.randn(count, n, 3, generator=g)
    i, j = torch.triu_indices(n, n, 1)
    r = (pos[:, i] - pos[:, j]).norm(dim=-1)
    energy = (r ** -12 - 2 * r ** -6).sum(1)
    return pos, energy


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    pos, e = clusters(1200, 6, g)
    mean, std = e[:1000].mean(), e[:1000].std()
    e = (e - mean) / std
    net = PairNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(5):
        net.train()
        total = 0.0
        for idx in torch.randperm(1000).split(50):
            loss = nn.functional.smooth_l1_loss(net(pos[idx]), e[idx])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            opt.step()
            total += loss.item() * len(idx)
        net.eval()
        with torch.no_grad():
            rmse = (net(pos[1000:]) - e[1000:]).square().mean().sqrt() * std
        print(f"epoch {epoch} loss {total / 1000:.4f} rmse {rmse:.4f}")


if __name__ == "__main__":
    main()
