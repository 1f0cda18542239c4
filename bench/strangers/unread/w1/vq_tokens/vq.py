"""VQ autoencoder with straight-through codes and an EMA codebook."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Codebook(nn.Module):
    def __init__(self, k, d, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(k, d))
        self.register_buffer("count", torch.ones(k))
        self.register_buffer("total", self.codes.clone())
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def _seed_from(self, flat, rows=slice(None)):
        n = len(self.codes[rows])
        pick = flat[torch.randint(len(flat), (n,))]
        self.codes[rows], self.total[rows], self.count[rows] = pick, pick, 1.0

    @torch.no_grad()
    def _update(self, flat, index):
        onehot = F.one_hot(index, len(self.codes)).type_as(flat)
        self.count.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(onehot.T @ flat, alpha=1 - self.decay)
        smooth = (self.count + 1e-3) / (self.count.sum() + 1e-3 * len(self.count)) * self.count.sum()
        self.codes.copy_(self.total / smooth.unsqueeze(1))
        dead = self.count < 0.05
        if dead.any():
            self._seed_from(flat, dead)

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        if self.training and not self.ready:
            self._seed_from(flat.detach())
            self.ready.fill_(True)
        index = torch.cdist(flat.detach(), self.codes).argmin(1)
        hard = self.codes[index].view_as(z)
        if self.training:
            self._update(flat.detach(), index)
        commit = F.mse_loss(z, hard)
        return z + (hard - z).detach(), index.view(z.shape[:-1]), commit


class VQAE(nn.Module):
    def __init__(self, k=32, d=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv1d(32, d, 4, 2, 1))
        self.book = Codebook(k, d)
        self.dec = nn.Sequential(nn.ConvTranspose1d(d, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(32, 1, 4, 2, 1))

    def forward(self, x):
        z = self.enc(x).transpose(1, 2)
        q, index, commit = self.book(z)
        return self.dec(q.transpose(1, 2)), index, commit


def waves(n, g, length=64):
    t = torch.linspace(0, 1, length)
    f = torch.randint(1, 5, (n, 1), generator=g)
    p = 6.283 * torch.rand(n, 1, generator=g)
    return torch.sin(6.283 * f * t + p).unsqueeze(1)


def main():
    torch.manual_seed(20)
    g = torch.Generator().manual_seed(20)
    train, val = waves(2000, g), waves(300, g)
    net = VQAE()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(6):
        net.train()
        for idx in torch.randperm(len(train)).split(100):
            rec, _, commit = net(train[idx])
            loss = F.mse_loss(rec, train[idx]) + 0.25 * commit
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            rec, index, _ = net(val)
            print(f"{epoch} val mse {F.mse_loss(rec, val).item():.4f} codes used {index.unique().numel()}")


if __name__ == "__main__":
    main()
