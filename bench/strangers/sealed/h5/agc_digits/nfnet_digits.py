"""Normaliser-free convnet on the 8x8 digits with adaptive gradient clipping and mixed precision."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
amp_dtype = torch.float16 if device == "cuda" else torch.bfloat16


def unitwise_norm(t):
    if t.ndim <= 1:
        return t.norm()
    return t.flatten(1).norm(dim=1).view(-1, *[1] * (t.ndim - 1))


class AdaptiveClip:
    """Limits the norm of every unit's gradient to a fraction of the norm of its weights (Brock et al.)."""

    def __init__(self, params, factor=0.05, eps=1e-3):
        self.params, self.factor, self.eps = list(params), factor, eps

    @torch.no_grad()
    def __call__(self):
        for p in self.params:
            if p.grad is None:
                continue
            limit = unitwise_norm(p).clamp(min=self.eps) * self.factor
            norm = unitwise_norm(p.grad)
            p.grad.mul_((limit / norm.clamp(min=1e-6)).clamp(max=1.0))


class Updater:
    def __init__(self, net, lr):
        self.opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9, nesterov=True)
        self.scaler = torch.amp.GradScaler(device)
        self.clip = AdaptiveClip(net.parameters())

    def __call__(self, loss):
        self.opt.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.clip()
        self.scaler.step(self.opt)
        self.scaler.update()


class Block(nn.Module):
    def __init__(self, c, alpha=0.2):
        super().__init__()
        self.a, self.b, self.alpha = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1), alpha

    def forward(self, x):
        return x + self.alpha * self.b(F.relu(self.a(F.relu(x))))


class NFNet(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.stem = nn.Conv2d(1, c, 3, padding=1)
        self.blocks = nn.Sequential(Block(c), Block(c))
        self.fc = nn.Linear(c * 16, 10)

    def forward(self, x):
        h = F.avg_pool2d(self.blocks(self.stem(x)), 2)
        return self.fc(h.flatten(1))


def main():
    torch.manual_seed(0)
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1).div(8).sub(1).to(device)
    y = torch.tensor(d.target).to(device)
    perm = torch.randperm(len(y))
    tr, te = perm[:1400], perm[1400:]
    net = NFNet().to(device)
    update = Updater(net, lr=0.1)
    for epoch in range(4):
        for idx in tr[torch.randperm(len(tr))].split(56):
            with torch.autocast(device, dtype=amp_dtype):
                loss = F.cross_entropy(net(x[idx]), y[idx])
            update(loss)
        with torch.no_grad():
            acc = (net(x[te]).argmax(1) == y[te]).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} test {acc:.3f} scale {update.scaler.get_scale():.0f}")


if __name__ == "__main__":
    main()
