"""Sharpness-aware minimisation; numpy augmentation with one generator per worker and epoch; flip TTA at the end."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kw):
        super().__init__(params, dict(rho=rho, **kw))
        self.base = base(self.param_groups, **kw)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None]).norm()
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    continue
                e = p.grad * (g["rho"] / (norm + 1e-12))
                p.add_(e)
                self.state[p]["e"] = e

    @torch.no_grad()
    def descend(self):
        for g in self.param_groups:
            for p in g["params"]:
                if "e" in self.state[p]:
                    p.sub_(self.state[p].pop("e"))
        self.base.step()

    @torch.no_grad()
    def step(self, closure):
        closure = torch.enable_grad()(closure)
        loss = closure()
        self.climb()
        closure()
        self.descend()
        return loss.detach()


class Leaves(Dataset):
    """horizontal vs. vertical vs. diagonal veins"""

    def __init__(self, n, seed, augment=False, side=14):
        r = np.random.default_rng(seed)
        yy, xx = np.mgrid[:side, :side]
        self.y = r.integers(0, 3, n)
        f, ph = r.uniform(0.8, 1.6, n), r.uniform(0, 6, n)
        axis = np.stack([yy, xx, (yy + xx) / 1.4])
        self.x = (np.sin(f[:, None, None] * axis[self.y] + ph[:, None, None]) + r.normal(0, 0.7, (n, side, side))).astype(np.float32)
        self.augment, self.rng = augment, None

    def __len__(self):
        return len(self.y)

    def generator(self):
        if self.rng is None:
            info = get_worker_info()
            # info.seed = base seed of this epoch + worker id
            self.rng = np.random.default_rng(info.seed if info else torch.initial_seed())
        return self.rng

    def __getitem__(self, i):
        x = self.x[i]
        if self.augment:
            r = self.generator()
            x = np.roll(x, r.integers(-3, 4, 2), (0, 1)) * r.uniform(0.8, 1.2)
        return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))[None], int(self.y[i])


def score(net, loader, views):
    net.eval()
    ok = 0
    with torch.no_grad():
        for x, y in loader:
            p = torch.stack([net(v(x)).softmax(1) for v in views]).mean(0)
            ok += (p.argmax(1) == y).sum().item()
    return ok / len(loader.dataset)


def main():
    np.random.seed(0)
    torch.manual_seed(0)
    train = DataLoader(Leaves(480, 1, augment=True), 32, shuffle=True, num_workers=2,
                       generator=torch.Generator().manual_seed(0))
    val = DataLoader(Leaves(150, 2), 75)
    net = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 3))
    opt = SAM(net.parameters(), torch.optim.SGD, lr=0.05, momentum=0.9)
    crit = nn.CrossEntropyLoss()
    plain = [lambda x: x]
    # the diagonal class is mirrored by a single flip, hence only the half turn and the identity
    tta = plain + [lambda x: x.flip(-1, -2)]
    for epoch in range(5):
        net.train()
        total = 0.0
        for x, y in train:
            def closure():
                opt.zero_grad()
                loss = crit(net(x), y)
                loss.backward()
                return loss
            total += opt.step(closure).item() * len(y)
        print(f"epoch {epoch}: loss {total / len(train.dataset):.3f} val {score(net, val, plain):.3f} with TTA {score(net, val, tta):.3f}")


if __name__ == "__main__":
    main()
