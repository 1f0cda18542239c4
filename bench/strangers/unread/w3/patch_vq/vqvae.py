import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Codebook(nn.Module):
    """Nearest-neighbour codes, updated by moving averages instead of gradients."""

    def __init__(self, size, dim, decay=0.95):
        super().__init__()
        self.decay = decay
        code = torch.randn(size, dim)
        self.register_buffer("code", code)
        self.register_buffer("count", torch.ones(size))
        self.register_buffer("total", code.clone())

    def forward(self, z):
        idx = torch.cdist(z.detach(), self.code).argmin(1)
        q = self.code[idx]
        if self.training:
            self._follow(z.detach(), idx)
        commit = F.mse_loss(z, q)
        return z + (q - z).detach(), commit, idx

    @torch.no_grad()
    def _follow(self, z, idx):
        onehot = F.one_hot(idx, len(self.code)).type_as(z)
        self.count.lerp_(onehot.sum(0), 1 - self.decay)
        self.total.lerp_(onehot.t() @ z, 1 - self.decay)
        smooth = (self.count + 1e-3) / (self.count.sum() + 1e-3 * len(self.code)) * self.count.sum()
        self.code = self.total / smooth.unsqueeze(1)


class VQVAE(nn.Module):
    def __init__(self, dim=6, codes=24, hidden=48):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(16, hidden), nn.ReLU(), nn.Linear(hidden, dim))
        self.book = Codebook(codes, dim)
        self.dec = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, 16))

    def forward(self, patches):
        q, commit, idx = self.book(self.enc(patches))
        return self.dec(q), commit, idx


def patches(images):
    return images.view(-1, 2, 4, 2, 4).transpose(2, 3).reshape(-1, 16)


def main():
    torch.manual_seed(30)
    img = torch.tensor(load_digits().images / 16.0, dtype=torch.float32)
    img = img[torch.randperm(len(img))]
    train, test = patches(img[:1500]), patches(img[1500:])
    model = VQVAE()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        model.train()
        for b in torch.randperm(len(train)).split(128):
            rec, commit, _ = model(train[b])
            loss = F.mse_loss(rec, train[b]) + 0.25 * commit
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            rec, _, idx = model(test)
        print(f"epoch {epoch} mse {F.mse_loss(rec, test).item():.4f} codes used {idx.unique().numel()}")


if __name__ == "__main__":
    main()
