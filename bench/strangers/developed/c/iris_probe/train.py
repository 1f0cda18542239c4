#!/usr/bin/env python
# Mon premier réseau avec PyTorch : classer les iris
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

graine = 0
np.random.seed(graine)
torch.manual_seed(graine)

# ---- données -------------------------------------------------------------
iris = load_iris()
X_train, X_test, y_train, y_test = train_test_split(
    iris.data, iris.target, test_size=0.3, random_state=graine, stratify=iris.target)
X_train, X_val, y_train, y_val = train_test_split(
    X_train, y_train, test_size=0.2, random_state=graine, stratify=y_train)

moyenne, ecart = X_train.mean(axis=0), X_train.std(axis=0)


def tenseurs(X, y):
    return torch.FloatTensor((X - moyenne) / ecart), torch.LongTensor(y)


X_train, y_train = tenseurs(X_train, y_train)
X_val, y_val = tenseurs(X_val, y_val)
X_test, y_test = tenseurs(X_test, y_test)

# ---- modèle --------------------------------------------------------------
modele = nn.Sequential(
    nn.Linear(4, 16),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(16, 3),
)
critere = nn.CrossEntropyLoss()
optimiseur = torch.optim.Adam(modele.parameters(), lr=0.01)


def mesurer(X, y):
    """Renvoie (perte, exactitude) sans calculer de gradients."""
    modele.eval()
    torch.set_grad_enabled(False)
    sorties = modele(X)
    perte = critere(sorties, y).item()
    exactitude = (sorties.argmax(dim=1) == y).float().mean().item()
    modele.train()
    return perte, exactitude


# ---- entraînement --------------------------------------------------------
print("avant entraînement :", mesurer(X_val, y_val))
meilleure = 0.0
for epoque in range(40):
    ordre = torch.randperm(len(X_train))
    for debut in range(0, len(X_train), 16):
        lot = ordre[debut:debut + 16]
        optimiseur.zero_grad()
        perte = critere(modele(X_train[lot]), y_train[lot])
        perte.backward()
        optimiseur.step()
    if epoque % 10 == 9:
        p, e = mesurer(X_val, y_val)
        meilleure = max(meilleure, e)
        print(f"époque {epoque + 1} : perte val {p:.3f}, exactitude val {e:.3f}")

print("test :", mesurer(X_test, y_test))
