import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def textures(n, side=16):
    y = torch.randint(8, (n,))
    angle = y * torch.pi / 8 + 0.05 * torch.randn(n)
    g = torch.linspace(0, 1, side)
    u = g[None, None] * angle.cos()[:, None, None] + g[None, :, None] * angle.sin()[:, None, None]
    return torch.sin(25 * u + 6.28 * torch.rand(n, 1, 1))[:, None] + 0.5 * torch.randn(n, 1, side, side), y


def view_of(x):
    dy, dx = torch.randint(-3, 4, (2,)).tolist()
    x = torch.roll(x, (dy, dx), (2, 3)) * (0.9 + 0.2 * torch.rand(len(x), 1, 1, 1))
    return x + 0.2 * torch.randn_like(x)


def encoder(dim=32):
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                         nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(32, dim))


class MoCo(nn.Module):
    def __init__(self, dim=32, slots=512, momentum=0.98, tau=0.1):
        super().__init__()
        self.query = encoder(dim)
        self.key = copy.deepcopy(self.query)
        for p in self.key.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(slots, dim), dim=1))
        self.register_buffer("cursor", torch.zeros((), dtype=torch.long))
        self.momentum, self.tau = momentum, tau

    @torch.no_grad()
    def move_key_encoder(self):
        for k, q in zip(self.key.parameters(), self.query.parameters()):
            k.data = k.data * self.momentum + q.data * (1 - self.momentum)

    @torch.no_grad()
    def remember(self, keys):
        i = int(self.cursor)
        self.queue[i:i + len(keys)] = keys
        self.cursor.fill_((i + len(keys)) % len(self.queue))

    def forward(self, a, b):
        q = F.normalize(self.query(a), dim=1)
        with torch.no_grad():
            self.move_key_encoder()
            k = F.normalize(self.key(b), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ self.queue.clone().T
        logits = torch.cat([positive, negative], 1) / self.tau
        self.remember(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))


@torch.no_grad()
def knn(model, bank, query, k=9):
    model.eval()
    fb, fq = (F.normalize(model.query(x), dim=1) for x in (bank[0], query[0]))
    votes = bank[1][(fq @ fb.T).topk(k, dim=1).indices]
    return (votes.mode(1).values == query[1]).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(30)
    train, test = textures(1024), textures(200)
    loader = DataLoader(TensorDataset(train[0]), batch_size=64, shuffle=True, drop_last=True)
    model = MoCo()
    opt = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=2e-3)
    print("untrained", knn(model, train, test))
    for epoch in range(12):
        model.train()
        for (x,) in loader:
            loss = model(view_of(x), view_of(x))
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 3 == 2:
            print(f"epoch {epoch} loss {loss.item():.3f} knn {knn(model, train, test):.3f}")
