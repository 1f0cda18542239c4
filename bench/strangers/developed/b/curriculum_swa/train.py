"""Cursus du facile au difficile, puis moyenne des poids (SWA), puis prédiction avec augmentation au test (TTA).

Pendant le cursus l'ordre est imposé entre paliers, mais mélangé à l'intérieur de chaque palier.
"""
import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, Sampler, TensorDataset


def barres(n, graine, cote=12):
    """Barre horizontale, verticale ou diagonale dans du bruit; le niveau de bruit est la difficulté."""
    g = torch.Generator().manual_seed(graine)
    y = torch.randint(0, 3, (n,), generator=g)
    bruit = 0.2 + 1.0 * torch.rand(n, generator=g)
    img = torch.zeros(n, 1, cote, cote)
    pos = torch.randint(2, cote - 2, (n,), generator=g)
    for i in range(n):
        if y[i] == 0:
            img[i, 0, pos[i]] = 1
        elif y[i] == 1:
            img[i, 0, :, pos[i]] = 1
        else:
            img[i, 0].fill_diagonal_(1)
    return img + bruit.view(-1, 1, 1, 1) * torch.randn(img.shape, generator=g), y, bruit


class Cursus(Sampler):
    """À l'époque e, seule la fraction la plus facile est visible; elle est mélangée à chaque passage."""

    def __init__(self, difficulte, epoques, graine):
        self.rang = difficulte.argsort()
        self.epoques = epoques
        self.g = torch.Generator().manual_seed(graine)
        self.epoque = 0

    def visibles(self):
        return int(len(self.rang) * min(1.0, 0.4 + 0.6 * self.epoque / max(1, self.epoques // 2)))

    def __len__(self):
        return self.visibles()

    def __iter__(self):
        facile = self.rang[:self.visibles()]
        yield from facile[torch.randperm(len(facile), generator=self.g)].tolist()


def reseau():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveMaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.1), nn.Linear(96, 3),
    )


@torch.no_grad()
def justesse(net, x, y, tta=0, gen=None):
    """tta > 0: moyenne des probabilités sur l'image et `tta` copies décalées d'un pixel au plus."""
    net.eval()
    p = net(x).softmax(1)
    for _ in range(tta):
        dy, dx = torch.randint(-1, 2, (2,), generator=gen).tolist()
        p = p + net(x.roll((dy, dx), (2, 3))).softmax(1)
    return (p.argmax(1) == y).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epoques", type=int, default=8)
    ap.add_argument("--debut-swa", type=int, default=5)
    a = ap.parse_args()
    torch.manual_seed(9)
    x, y, difficulte = barres(900, 1)
    xv, yv, _ = barres(300, 2)
    cursus = Cursus(difficulte, a.epoques, 9)
    charge = DataLoader(TensorDataset(x, y), 45, sampler=cursus)
    net = reseau()
    moyenne = AveragedModel(net)
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    swa = SWALR(opt, swa_lr=0.02, anneal_epochs=2)
    for e in range(a.epoques):
        cursus.epoque = e
        net.train()
        for xb, yb in charge:
            opt.zero_grad()
            F.cross_entropy(net(xb), yb).backward()
            opt.step()
        if e >= a.debut_swa:
            moyenne.update_parameters(net)
            swa.step()
        print(f"époque {e}: {len(cursus)} exemples, validation {justesse(net, xv, yv):.3f}")
    # les statistiques de batchnorm de la moyenne se recalculent sur les données d'entraînement
    update_bn(charge, moyenne)
    print(f"SWA {justesse(moyenne, xv, yv):.3f}, SWA + TTA {justesse(moyenne, xv, yv, 8, torch.Generator().manual_seed(1)):.3f}")


if __name__ == "__main__":
    main()
