import torch, math
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def bump(t, mu, s, a):
    return a * torch.exp(-0.5 * ((t - mu) / s) ** 2)


def beats(n, gen):
    """Normal beats, early beats and broad ventricular beats, 96 samples each."""
    t = torch.linspace(0, 1, 96)[None].expand(n, -1)
    y = torch.randint(3, (n,), generator=gen)
    shift = 0.03 * torch.randn(n, 1, generator=gen)
    r = (0.45 - 0.12 * (y == 1).float())[:, None] + shift
    width = (0.02 + 0.04 * (y == 2).float())[:, None]
    p_amp = (0.15 * (y != 2).float())[:, None]
    x = bump(t, r - 0.18, 0.03, p_amp) + bump(t, r, width, 1.0) - bump(t, r + 0.06, width, 0.3) + bump(t, r + 0.3, 0.06, 0.3)
    return (x + 0.1 * torch.randn(n, 96, generator=gen))[:, None], y


class Residual(nn.Module):
    def __init__(self, c, dilation):
        super().__init__()
        self.a = nn.Conv1d(c, c, 5, padding=2 * dilation, dilation=dilation)
        self.b = nn.Conv1d(c, c, 1)
        self.n = nn.GroupNorm(4, c)

    def forward(self, x):
        return x + self.b(F.gelu(self.n(self.a(x))))


class BeatNet(nn.Module):
    def __init__(self, c=24, blocks=4):
        super().__init__()
        self.stem = nn.Conv1d(1, c, 7, stride=2, padding=3)
        self.context = nn.ModuleList(Residual(c, 2 ** i) for i in range(blocks))
        self.head = nn.Linear(2 * c, 3)

    def forward(self, x):
        h = F.gelu(self.stem(x))
        for block in self.context:
            z = block(h)
        return self.head(torch.cat([z.mean(-1), z.amax(-1)], 1))


def main():
    torch.manual_seed(12)
    gen = torch.Generator().manual_seed(12)
    train = DataLoader(TensorDataset(*beats(900, gen)), batch_size=45, shuffle=True)
    xv, yv = beats(300, gen)
    net = BeatNet()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
    lr_at = lambda s: 0.5 * (1 + math.cos(math.pi * min(s / (5 * len(train)), 1.0)))
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lr_at)
    for epoch in range(5):
        net.train()
        tot = 0.0
        for x, y in train:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            tot += loss.item() * len(y)
        net.eval()
        with torch.no_grad():
            acc = (net(xv).argmax(1) == yv).float().mean().item()
        print(f"epoch {epoch}: loss {tot / 900:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
