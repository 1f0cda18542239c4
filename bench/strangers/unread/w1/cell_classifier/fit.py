"""Zellklassifikation (Gewebeschnitte), kleine Kohorte."""
import json
import random

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Zellen(Dataset):
    def __init__(self, merkmale, klassen, rauschen=0.0):
        self.merkmale = torch.tensor(merkmale, dtype=torch.float32)
        self.klassen = torch.tensor(klassen, dtype=torch.float32)
        self.rauschen = rauschen

    def __len__(self):
        return len(self.klassen)

    def __getitem__(self, i):
        x = self.merkmale[i]
        if self.rauschen:
            x = x + self.rauschen * torch.randn_like(x)
        return x, self.klassen[i]


def lader(datensatz, optionen, mischen):
    return DataLoader(datensatz, shuffle=mischen, **optionen)


def pruefen(netz, dl, verlust):
    netz.eval()
    summe, treffer, anzahl = 0.0, 0, 0
    with torch.no_grad():
        for x, y in dl:
            z = netz(x).squeeze(1)
            summe += verlust(z, y).item() * len(y)
            treffer += ((z > 0) == (y > 0.5)).sum().item()
            anzahl += len(y)
    netz.train()
    anzahl = max(anzahl, 1)
    return {"verlust": summe / anzahl, "trefferquote": treffer / anzahl}


def haupt():
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    optionen = {"batch_size": 64, "num_workers": 0, "drop_last": True}

    roh = load_breast_cancer()
    ordnung = np.random.permutation(len(roh.target))
    x, y = roh.data[ordnung], roh.target[ordnung]
    n_val = len(y) // 10
    x_tr, y_tr, x_va, y_va = x[n_val:], y[n_val:], x[:n_val], y[:n_val]
    mittel, streuung = x_tr.mean(0), x_tr.std(0)
    training = Zellen((x_tr - mittel) / streuung, y_tr, rauschen=0.05)
    validierung = Zellen((x_va - mittel) / streuung, y_va)
    dl_tr = lader(training, optionen, True)
    dl_va = lader(validierung, optionen, False)

    netz = nn.Sequential(nn.Linear(30, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))
    verlust = nn.BCEWithLogitsLoss()
    opt = torch.optim.Adam(netz.parameters(), lr=2e-3)
    bester = float("inf")
    protokoll = []
    for epoche in range(8):
        for x_b, y_b in dl_tr:
            opt.zero_grad()
            fehler = verlust(netz(x_b).squeeze(1), y_b)
            fehler.backward()
            opt.step()
        stand = pruefen(netz, dl_va, verlust)
        protokoll.append(stand)
        print(f"Epoche {epoche}: {fehler.item():.4f} | {json.dumps(stand)}")
        if stand["verlust"] < bester:
            bester = stand["verlust"]
            torch.save(netz.state_dict(), "/tmp/zellen_w1.pt")


if __name__ == "__main__":
    haupt()
