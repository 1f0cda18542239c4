import argparse

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, random_split

from nets import build


class Leaves(Dataset):
    """Coloured blobs on noise; class = (shape, colour)."""

    def __init__(self, n, size=24, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 4, (n,), generator=g)
        yy, xx = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
        self.x = 0.3 * torch.randn(n, 3, size, size, generator=g)
        for i, k in enumerate(self.y.tolist()):
            cx, cy = (torch.rand(2, generator=g) - 0.5).tolist()
            a = 3.0 if k % 2 else 1.0
            blob = ((xx - cx) ** 2 * a + (yy - cy) ** 2 < 0.15).float()
            self.x[i, k // 2] += blob

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def epoch_pass(net, loader, opt=None):
    net.train(opt is not None)
    loss_sum = hits = n = 0
    with torch.set_grad_enabled(opt is not None):
        for x, y in loader:
            logits = net(x)
            loss = cross_entropy(logits, y)
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                opt.step()
            loss_sum += loss.item() * len(y)
            hits += (logits.argmax(1) == y).sum().item()
            n += len(y)
    return loss_sum / n, hits / n


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--arch", default="mobile_s")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--lr", type=float, default=0.05)
    args = p.parse_args()

    torch.manual_seed(1)
    train, val = random_split(Leaves(500), [400, 100], generator=torch.Generator().manual_seed(1))
    net = build(args.arch, n_classes=4)
    opt = torch.optim.SGD(net.parameters(), args.lr, momentum=0.9, nesterov=True)
    tl, vl = DataLoader(train, 40, shuffle=True), DataLoader(val, 50)
    for e in range(args.epochs):
        tr = epoch_pass(net, tl, opt)
        va = epoch_pass(net, vl)
        print(e, "train %.3f/%.3f" % tr, "val %.3f/%.3f" % va)
