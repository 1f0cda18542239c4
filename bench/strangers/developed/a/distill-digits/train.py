# -*- coding: utf-8 -*-
# Distillation : un petit élève apprend d'un grand professeur (jeu « digits » de scikit-learn)

# %% imports et données
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)
X, y = load_digits(return_X_y=True)
X = torch.tensor(X, dtype=torch.float32) / 16.0
y = torch.tensor(y)
i_app, i_test = train_test_split(range(len(X)), test_size=0.3, random_state=10, stratify=y)
appr = DataLoader(TensorDataset(X[i_app], y[i_app]), batch_size=64, shuffle=True)
test = DataLoader(TensorDataset(X[i_test], y[i_test]), batch_size=256)

# %% les deux réseaux
professeur = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.3),
                           nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 10))
eleve = nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10))


def exactitude(reseau):
    reseau.eval()
    bons = 0
    with torch.no_grad():
        for xb, yb in test:
            bons += (reseau(xb).argmax(1) == yb).sum().item()
    return bons / len(i_test)


# %% entraînement du professeur
opt_p = torch.optim.Adam(professeur.parameters(), lr=2e-3)
for epoque in range(8):
    professeur.train()
    for xb, yb in appr:
        perte = F.cross_entropy(professeur(xb), yb)
        opt_p.zero_grad()
        perte.backward()
        opt_p.step()
print(f"professeur : {exactitude(professeur):.3f}")

# %% le professeur est figé, il ne sert plus qu'à produire des cibles douces
professeur.eval()
for p in professeur.parameters():
    p.requires_grad_(False)

T, ALPHA = 4.0, 0.7


def perte_distillation(logits_e, logits_p, cible):
    douce = F.kl_div(F.log_softmax(logits_e / T, dim=1), F.softmax(logits_p / T, dim=1),
                     reduction="batchmean") * T * T
    dure = F.cross_entropy(logits_e, cible)
    return ALPHA * douce + (1 - ALPHA) * dure


# %% entraînement de l'élève
opt_e = torch.optim.Adam(eleve.parameters(), lr=5e-3)
plan = torch.optim.lr_scheduler.StepLR(opt_e, step_size=8, gamma=0.3)
for epoque in range(16):
    eleve.train()
    cumul, n = 0.0, 0
    for xb, yb in appr:
        with torch.no_grad():
            cible_p = professeur(xb)
        perte = perte_distillation(eleve(xb), cible_p, yb)
        opt_e.zero_grad(set_to_none=True)
        perte.backward()
        opt_e.step()
        cumul += perte.item() * len(yb)
        n += len(yb)
    plan.step()
    if epoque % 4 == 3:
        print(f"époque {epoque + 1:2d}  perte {cumul / n:.3f}  élève {exactitude(eleve):.3f}")
