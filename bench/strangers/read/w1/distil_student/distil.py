"""Destillation: grosses Lehrernetz -> kleines Schuelernetz."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def netz(*breiten, tropfen=0.0):
    teile = []
    for a, b in zip(breiten[:-2], breiten[1:-1]):
        teile += [nn.Linear(a, b), nn.ReLU(), nn.Dropout(tropfen)]
    return nn.Sequential(*teile, nn.Linear(breiten[-2], breiten[-1]))


def stapel(x, y, groesse):
    for idx in torch.randperm(len(x)).split(groesse):
        yield x[idx], y[idx]


def genauigkeit(modell, x, y):
    modell.eval()
    with torch.no_grad():
        return (modell(x).argmax(1) == y).float().mean().item()


def lehre(modell, x, y, epochen, lr):
    opt = torch.optim.Adam(modell.parameters(), lr=lr)
    for _ in range(epochen):
        modell.train()
        for xb, yb in stapel(x, y, 64):
            opt.zero_grad()
            F.cross_entropy(modell(xb), yb).backward()
            opt.step()


def destilliere(schueler, lehrer, x, y, epochen, lr, temperatur=3.0, anteil=0.7):
    lehrer.eval()
    for p in lehrer.parameters():
        p.requires_grad_(False)
    opt = torch.optim.Adam(schueler.parameters(), lr=lr)
    for _ in range(epochen):
        schueler.train()
        for xb, yb in stapel(x, y, 64):
            with torch.no_grad():
                weich = F.softmax(lehrer(xb) / temperatur, dim=1)
            aus = schueler(xb)
            kl = F.kl_div(F.log_softmax(aus / temperatur, dim=1), weich, reduction="batchmean")
            verlust = anteil * temperatur ** 2 * kl + (1 - anteil) * F.cross_entropy(aus, yb)
            opt.zero_grad()
            verlust.backward()
            opt.step()


if __name__ == "__main__":
    torch.manual_seed(8)
    d = load_digits()
    xa, xb, ya, yb = train_test_split(d.data / 16, d.target, test_size=0.3, random_state=8, stratify=d.target)
    xa, xb = torch.tensor(xa, dtype=torch.float32), torch.tensor(xb, dtype=torch.float32)
    ya, yb = torch.tensor(ya), torch.tensor(yb)
    lehrer, schueler = netz(64, 256, 256, 10, tropfen=0.3), netz(64, 16, 10)
    lehre(lehrer, xa, ya, 15, 1e-3)
    print("Lehrer", round(genauigkeit(lehrer, xb, yb), 4))
    destilliere(schueler, lehrer, xa, ya, 25, 3e-3)
    print("Schueler", round(genauigkeit(schueler, xb, yb), 4))
    torch.save(schueler.state_dict(), "/tmp/schueler_w1.pt")
