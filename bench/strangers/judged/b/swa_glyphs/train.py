from dataclasses import dataclass, asdict

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class HP:
    micro: int = 16          # what fits into memory
    accumulate: int = 4      # micro batches per update
    lr: float = 0.05
    swa_lr: float = 0.02
    epochs: int = 6
    swa_from: int = 3
    seed: int = 90


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(c), nn.BatchNorm2d(c)

    def forward(self, x):
        return F.relu(x + self.nb(self.b(F.relu(self.na(self.a(x))))))


def network(c=16):
    return nn.Sequential(nn.Conv2d(1, c, 3, padding=1), Block(c), nn.MaxPool2d(2), Block(c), nn.Flatten(),
                         nn.Linear(c * 16, 10))


def groups(loader, size):
    """lists of up to `size` micro batches; the last list may be shorter"""
    bag = []
    for item in loader:
        bag.append(item)
        if len(bag) == size:
            yield bag
            bag = []
    if bag:
        yield bag


def update(net, opt, bag):
    n = sum(len(y) for _, y in bag)
    opt.zero_grad(set_to_none=True)
    total = 0.0
    for x, y in bag:
        part = F.cross_entropy(net(x), y, reduction="sum") / n
        part.backward()
        total += part.item()
    opt.step()
    return total


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    return sum((net(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def main(hp=HP()):
    torch.manual_seed(hp.seed)
    d = load_digits()
    img, lab = torch.tensor(d.images[:, None] / 16, dtype=torch.float32), torch.tensor(d.target)
    (fit, held), = StratifiedShuffleSplit(1, test_size=0.3, random_state=hp.seed).split(img, lab)
    fit_dl = DataLoader(TensorDataset(img[fit], lab[fit]), hp.micro, shuffle=True)
    held_dl = DataLoader(TensorDataset(img[held], lab[held]), 256)

    net = network()
    mean_net = AveragedModel(net)
    opt = torch.optim.SGD(net.parameters(), hp.lr, momentum=0.9, weight_decay=5e-4)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, hp.swa_from, eta_min=hp.swa_lr)
    swa = SWALR(opt, hp.swa_lr, anneal_epochs=1)
    print(asdict(hp))
    for epoch in range(hp.epochs):
        net.train()
        losses = [update(net, opt, bag) for bag in groups(fit_dl, hp.accumulate)]
        if epoch >= hp.swa_from:
            mean_net.update_parameters(net)
            swa.step()
        else:
            cosine.step()
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} acc {accuracy(net, held_dl):.4f}")
    update_bn(fit_dl, mean_net)
    print(f"averaged weights: acc {accuracy(mean_net, held_dl):.4f}")


if __name__ == "__main__":
    main()
