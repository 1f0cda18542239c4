import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

from netz import HerzschlagNetz, NetzKonfig


def schlaege_erzeugen(anzahl, laenge, klassen, rng):
    t = np.linspace(0, 1, laenge, dtype=np.float32)
    y = rng.integers(0, klassen, anzahl)
    x = np.empty((anzahl, 1, laenge), dtype=np.float32)
    for i, c in enumerate(y):
        mitte = 0.3 + 0.1 * c + rng.normal(0, 0.01)
        breite = 0.02 + 0.01 * c
        x[i, 0] = np.exp(-((t - mitte) ** 2) / (2 * breite**2)) + 0.05 * rng.standard_normal(laenge)
    return torch.from_numpy(x), torch.from_numpy(y)


@torch.no_grad()
def pruefen(netz, lader):
    netz.eval()
    richtig = gesamt = 0
    for x, y in lader:
        richtig += (netz(x).argmax(1) == y).sum().item()
        gesamt += len(y)
    return richtig / gesamt


def haupt():
    torch.manual_seed(7)
    konfig = NetzKonfig()
    x, y = schlaege_erzeugen(600, konfig.laenge, konfig.klassen, np.random.default_rng(7))
    lern, test = random_split(TensorDataset(x, y), [480, 120])
    lernlader = DataLoader(lern, batch_size=32, shuffle=True)
    testlader = DataLoader(test, batch_size=64)

    netz = HerzschlagNetz(konfig)
    opt = torch.optim.AdamW(netz.parameters(), lr=1e-3)
    for epoche in range(4):
        netz.train()
        summe = 0.0
        for xb, yb in lernlader:
            opt.zero_grad()
            verlust = F.cross_entropy(netz(xb), yb)
            verlust.backward()
            opt.step()
            summe += verlust.item() * len(yb)
        print(f"Epoche {epoche}: Verlust {summe / len(lern):.4f}  Treffer {pruefen(netz, testlader):.3f}")


if __name__ == "__main__":
    haupt()
