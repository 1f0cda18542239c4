"""Ensemble d'instantanés : un modèle est gardé à la fin de chaque cycle (Huang et al., 2017)."""
import copy
import math

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class CosinusCyclique:
    """Taux d'apprentissage : de `taux_max` presque à zéro dans chaque cycle, puis redémarrage."""

    def __init__(self, optimiseur, taux_max, pas_par_cycle):
        self.optimiseur, self.taux_max, self.pas_par_cycle = optimiseur, taux_max, pas_par_cycle
        self.pas = 0
        self._appliquer()

    def _appliquer(self):
        phase = (self.pas % self.pas_par_cycle) / self.pas_par_cycle
        for groupe in self.optimiseur.param_groups:
            groupe["lr"] = self.taux_max / 2 * (1 + math.cos(math.pi * phase))

    def avancer(self):
        self.pas += 1
        self._appliquer()
        return self.pas % self.pas_par_cycle == 0


def reseau():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))


@torch.no_grad()
def precision_ensemble(modeles, x, y):
    probas = torch.zeros(len(y), 10)
    for m in modeles:
        m.eval()
        probas += F.softmax(m(x), dim=1)
    return (probas.argmax(1) == y).float().mean().item()


def principal(cycles=4, epoques_par_cycle=3, taux_max=0.15):
    torch.manual_seed(23)
    x, y = load_digits(return_X_y=True)
    xa, xt, ya, yt = train_test_split(x / 16.0, y, test_size=0.3, stratify=y, random_state=23)
    xa, xt = (torch.tensor(v, dtype=torch.float32) for v in (xa, xt))
    ya, yt = torch.tensor(ya), torch.tensor(yt)
    chargeur = DataLoader(TensorDataset(xa, ya), batch_size=32, shuffle=True)

    modele = reseau()
    optimiseur = torch.optim.SGD(modele.parameters(), lr=taux_max, momentum=0.9, weight_decay=1e-4)
    horaire = CosinusCyclique(optimiseur, taux_max, epoques_par_cycle * len(chargeur))
    instantanes = []
    for _ in range(cycles * epoques_par_cycle):
        modele.train()
        for xb, yb in chargeur:
            perte = F.cross_entropy(modele(xb), yb)
            optimiseur.zero_grad()
            perte.backward()
            optimiseur.step()
            if horaire.avancer():
                instantanes.append(copy.deepcopy(modele))
                seul = precision_ensemble(instantanes[-1:], xt, yt)
                print(f"cycle {len(instantanes)} : seul {seul:.4f}, ensemble {precision_ensemble(instantanes, xt, yt):.4f}")


if __name__ == "__main__":
    principal()
