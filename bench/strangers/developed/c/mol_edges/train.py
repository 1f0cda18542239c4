# Molekül-Spielzeugaufgabe: Graph-Regression mit eigenem Message Passing (kein PyG nötig)
import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(42)
ATOME, BINDUNGEN, DIM = 6, 4, 32


def zufallsgraph(gen):
    n = int(torch.randint(5, 12, (1,), generator=gen))
    typ = torch.randint(0, ATOME, (n,), generator=gen)
    # zufälliger Baum + ein paar Ringe
    eltern = torch.stack([torch.randint(0, i, (1,), generator=gen)[0] for i in range(1, n)])
    a = torch.stack([torch.arange(1, n), eltern])
    kanten = torch.cat([a, a.flip(0)], dim=1)
    art = torch.randint(0, BINDUNGEN, (n - 1,), generator=gen).repeat(2)
    ziel = typ.float().mean() + 0.5 * (art == 2).float().sum() / n
    return typ, kanten, art, ziel


def stapeln(graphen):
    typ, ei, ea, idx, y, off = [], [], [], [], [], 0
    for g, (t, k, a, z) in enumerate(graphen):
        typ.append(t); ei.append(k + off); ea.append(a); y.append(z)
        idx.append(torch.full((len(t),), g)); off += len(t)
    return torch.cat(typ), torch.cat(ei, 1), torch.cat(ea), torch.cat(idx), torch.stack(y)


class Schicht(nn.Module):
    """h_i' = GRU(h_i, Summe_j MLP(h_j)) mit Tor aus der Bindungsart."""

    def __init__(self, dim):
        super().__init__()
        self.bindung = nn.Embedding(BINDUNGEN, dim)
        self.tor = nn.Sequential(nn.Linear(dim, dim), nn.Sigmoid())
        self.nachricht = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.gru = nn.GRUCell(dim, dim)

    def forward(self, h, kanten, art):
        quelle, senke = kanten
        g = self.tor(self.bindung(art))
        m = self.nachricht(h)
        # Nachricht pro Knoten statt pro Kante, spart Speicher
        summe = torch.zeros_like(h).index_add(0, senke, m[quelle])
        return self.gru(summe, h)


class GraphNetz(nn.Module):
    def __init__(self, tiefe=3):
        super().__init__()
        self.atom = nn.Embedding(ATOME, DIM)
        self.schichten = nn.ModuleList([Schicht(DIM) for _ in range(tiefe)])
        self.lesen = nn.Sequential(nn.Linear(DIM, DIM), nn.ReLU(), nn.Linear(DIM, 1))

    def forward(self, typ, kanten, art, idx, anzahl):
        h = self.atom(typ)
        for s in self.schichten:
            h = s(h, kanten, art)
        summe = torch.zeros(anzahl, DIM).index_add(0, idx, h)
        groesse = torch.bincount(idx, minlength=anzahl).unsqueeze(1)
        return self.lesen(summe / groesse).squeeze(1)


gen = torch.Generator().manual_seed(7)
alle = [zufallsgraph(gen) for _ in range(500)]
training, pruefung = alle[:400], alle[400:]

netz = GraphNetz()
opt = torch.optim.Adam(netz.parameters(), lr=3e-3)
pruef = stapeln(pruefung)

for epoche in range(5):
    netz.train()
    reihenfolge = torch.randperm(len(training), generator=gen).tolist()
    for i in range(0, len(training), 40):
        typ, kanten, art, idx, y = stapeln([training[j] for j in reihenfolge[i:i + 40]])
        verlust = mse_loss(netz(typ, kanten, art, idx, len(y)), y)
        opt.zero_grad()
        verlust.backward()
        opt.step()
    netz.eval()
    with torch.no_grad():
        typ, kanten, art, idx, y = pruef
        fehler = mse_loss(netz(typ, kanten, art, idx, len(y)), y)
    print(f"Epoche {epoche}: Prüf-MSE {fehler.item():.4f}")
