import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from blocks import ConvBlock, Down, Up


class UNet(nn.Module):
    def __init__(self, widths=(8, 16, 32), n_out=1):
        super().__init__()
        self.stem = ConvBlock(1, widths[0])
        self.downs = nn.ModuleList([Down(a, b) for a, b in zip(widths, widths[1:])])
        self.ups = nn.ModuleList([Up(b, a) for a, b in reversed(list(zip(widths, widths[1:])))])
        self.head = nn.Conv2d(widths[0], n_out, 1)

    def forward(self, x):
        skips = [self.stem(x)]
        for down in self.downs:
            skips.append(down(skips[-1]))
        h = skips.pop()
        for up in self.ups:
            h = up(h, skips.pop())
        return self.head(h)


def vessels(n, seed, size=32):
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(size).float(), torch.arange(size).float(), indexing="ij")
    amp, freq, off = (torch.rand(n, 1, 1, generator=g) for _ in range(3))
    centre = size / 2 + 8 * (off - 0.5) + 6 * amp * torch.sin((0.1 + 0.3 * freq) * xx)
    mask = ((yy - centre).abs() < 2).float()
    return (0.8 * mask + 0.4 * torch.randn(n, size, size, generator=g)).unsqueeze(1), mask.unsqueeze(1)


def dice_loss(logits, target):
    p = logits.sigmoid().flatten(1)
    t = target.flatten(1)
    return 1 - ((2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)).mean()


@torch.no_grad()
def mean_dice(model, loader):
    model.eval()
    values = []
    for x, t in loader:
        p = (model(x) > 0).float().flatten(1)
        t = t.flatten(1)
        values.append(2 * (p * t).sum(1) / (p.sum(1) + t.sum(1)).clamp(min=1))
    return torch.cat(values).mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    train = DataLoader(TensorDataset(*vessels(96, 1)), batch_size=16, shuffle=True)
    val = DataLoader(TensorDataset(*vessels(32, 2)), batch_size=16)
    model = UNet()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(4):
        model.train()
        for x, t in train:
            logits = model(x)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, t) + dice_loss(logits, t)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f} dice {mean_dice(model, val):.3f}")
