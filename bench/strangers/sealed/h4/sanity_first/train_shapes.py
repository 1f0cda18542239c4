import copy
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def shapes(n, seed, size=12):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 3, (n,), generator=g)
    img = 0.5 * torch.randn(n, 1, size, size, generator=g)
    pos = torch.randint(1, size - 6, (n, 2), generator=g)
    for i in range(n):
        r, c = pos[i].tolist()
        if kind[i] == 0:
            img[i, 0, r:r + 5, c:c + 5] += 1.2
        elif kind[i] == 1:
            img[i, 0, r:r + 5, c + 2] += 2.0
            img[i, 0, r + 2, c:c + 5] += 2.0
        else:
            img[i, 0, r, c:c + 5] += 2.0
            img[i, 0, r + 4, c:c + 5] += 2.0
    return TensorDataset(img, kind)


def build():
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2),
                         nn.Flatten(), nn.Linear(128, 3))


def steps(net, batches, lr):
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    for img, kind in batches:
        loss = nn.functional.cross_entropy(net(img), kind)
        opt.zero_grad()
        loss.backward()
        opt.step()
        yield loss.item()


def can_memorise(net, loader, tries=80):
    """A net that cannot learn eight pictures by heart is broken; works on a throw-away copy."""
    img, kind = next(iter(loader))
    probe = copy.deepcopy(net)
    *_, last = steps(probe, itertools.repeat((img[:8], kind[:8]), tries), lr=3e-3)
    return last


def accuracy(net, data):
    net.eval()
    with torch.no_grad():
        img, kind = data.tensors
        score = (net(img).argmax(1) == kind).float().mean().item()
    net.train()
    return score


torch.manual_seed(0)
train, valid = shapes(900, 1), shapes(300, 2)
loader = DataLoader(train, batch_size=32, shuffle=True)
net = build()

memorised = can_memorise(net, loader)
print(f"loss on eight pictures after 80 steps: {memorised:.4f}")
assert memorised < 0.1, "model or loss is broken"

epochs = 8
forever = itertools.chain.from_iterable(itertools.repeat(loader, epochs))
for k, loss in enumerate(steps(net, forever, lr=2e-3), start=1):
    if k % (2 * len(loader)) == 0:
        print(f"step {k}  loss {loss:.3f}  valid accuracy {accuracy(net, valid):.3f}")
