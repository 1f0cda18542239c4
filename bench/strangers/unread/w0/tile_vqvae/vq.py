import torch
from torch import nn
from torch.nn import functional as F

CFG = {"seed": 36, "codes": 32, "dim": 8, "decay": 0.95, "commit": 0.25, "lr": 2e-3, "epochs": 8, "batch": 64}


def tiles(n, gen, side=8):
    kind = torch.randint(6, (n,), generator=gen)
    g = torch.arange(side)
    row, col = g[None, :, None], g[None, None]
    freq = (kind % 3 + 1)[:, None, None] * 0.8
    along = torch.where(kind[:, None, None] < 3, row, col)
    img = torch.sin(freq * along).expand(n, side, side)
    return (img + 0.1 * torch.randn(n, side, side, generator=gen))[:, None]


class Codebook(nn.Module):
    """Vector quantiser whose codes follow the data by moving averages."""

    def __init__(self, codes, dim, decay):
        super().__init__()
        self.decay = decay
        self.register_buffer("vectors", torch.randn(codes, dim))
        self.register_buffer("size", torch.ones(codes))
        self.register_buffer("sums", self.vectors.clone())
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def adapt(self, flat, index):
        hot = F.one_hot(index, len(self.vectors)).to(flat.dtype)
        self.size.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(hot.T @ flat, alpha=1 - self.decay)
        total = self.size.sum()
        size = (self.size + 1e-5) / (total + len(self.size) * 1e-5) * total
        self.vectors.copy_(self.sums / size[:, None])

    @torch.no_grad()
    def start(self, flat):
        self.vectors.copy_(flat[torch.randperm(len(flat))[:len(self.vectors)]])
        self.sums.copy_(self.vectors)
        self.ready.fill_(True)

    def forward(self, z):
        b, d, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, d)
        if self.training and not self.ready:
            self.start(flat.detach())
        index = torch.cdist(flat, self.vectors).argmin(1)
        quant = self.vectors[index].reshape(b, h, w, d).permute(0, 3, 1, 2)
        if self.training:
            self.adapt(flat.detach(), index)
        commitment = F.mse_loss(z, quant.detach())
        return z + (quant - z).detach(), commitment, index


class VqVae(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d = cfg["dim"]
        self.enc = nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, d, 1))
        self.book = Codebook(cfg["codes"], d, cfg["decay"])
        self.dec = nn.Sequential(nn.Conv2d(d, 32, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1))

    def forward(self, x):
        q, commitment, index = self.book(self.enc(x))
        return self.dec(q), commitment, index


def main(cfg):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    train, test = tiles(1500, gen), tiles(300, gen)
    model = VqVae(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    for epoch in range(cfg["epochs"]):
        model.train()
        for idx in torch.randperm(len(train)).split(cfg["batch"]):
            rec, commitment, _ = model(train[idx])
            loss = F.mse_loss(rec, train[idx]) + cfg["commit"] * commitment
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            rec, _, index = model(test)
        used = index.unique().numel()
        print(f"epoch {epoch} test mse {F.mse_loss(rec, test).item():.4f} codes in use {used}/{cfg['codes']}")


if __name__ == "__main__":
    main(CFG)
