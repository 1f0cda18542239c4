# Knotenklassifikation auf einem kleinen Zitationsgraphen (semi-supervised, transduktiv)
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)
rng = np.random.RandomState(42)

ANZ_KNOTEN, ANZ_KLASSEN, ANZ_MERKMALE = 400, 4, 64


def baue_graph():
    klasse = rng.randint(0, ANZ_KLASSEN, ANZ_KNOTEN)
    gleich = klasse[:, None] == klasse[None, :]
    p = np.where(gleich, 0.03, 0.006)
    A = np.triu(rng.rand(ANZ_KNOTEN, ANZ_KNOTEN) < p, 1)
    A = (A | A.T).astype(np.float32)
    prototypen = rng.rand(ANZ_KLASSEN, ANZ_MERKMALE) < 0.2
    x = (rng.rand(ANZ_KNOTEN, ANZ_MERKMALE) < np.where(prototypen[klasse], 0.25, 0.12)).astype(np.float32)
    return torch.tensor(A), torch.tensor(x), torch.tensor(klasse)


def normiere(A):
    A = A + torch.eye(len(A))
    d = A.sum(1).pow(-0.5)
    return d[:, None] * A * d[None, :]


class GCNSchicht(nn.Module):
    def __init__(self, ein, aus):
        super().__init__()
        self.lin = nn.Linear(ein, aus, bias=False)
        self.bias = nn.Parameter(torch.zeros(aus))

    def forward(self, x, A_hat):
        return A_hat @ self.lin(x) + self.bias


class GCN(nn.Module):
    def __init__(self, ein, versteckt, aus, p=0.5):
        super().__init__()
        self.p = p
        self.s1 = GCNSchicht(ein, versteckt)
        self.s2 = GCNSchicht(versteckt, aus)

    def forward(self, x, A_hat):
        x = F.dropout(x, self.p)
        x = F.relu(self.s1(x, A_hat))
        x = F.dropout(x, self.p)
        return self.s2(x, A_hat)


A, x, y = baue_graph()
A_hat = normiere(A)
x = x / x.sum(1, keepdim=True).clamp(min=1)

# 20 Knoten pro Klasse zum Trainieren, 100 zur Validierung, Rest zum Testen
mischung = rng.permutation(ANZ_KNOTEN)
train_idx = np.concatenate([[i for i in mischung if y[i] == k][:20] for k in range(ANZ_KLASSEN)])
rest = np.setdiff1d(mischung, train_idx)
rng.shuffle(rest)
maske = {n: torch.zeros(ANZ_KNOTEN, dtype=torch.bool) for n in ("train", "val", "test")}
maske["train"][train_idx] = True
maske["val"][rest[:100]] = True
maske["test"][rest[100:]] = True

netz = GCN(ANZ_MERKMALE, 16, ANZ_KLASSEN)
opt = torch.optim.Adam(netz.parameters(), lr=0.01, weight_decay=5e-4)


def lernschritt():
    netz.train()
    opt.zero_grad()
    logits = netz(x, A_hat)
    verlust = F.cross_entropy(logits[maske["train"]], y[maske["train"]])
    verlust.backward()
    opt.step()
    return verlust.item()


@torch.no_grad()
def pruefe():
    netz.eval()
    vorhersage = netz(x, A_hat).argmax(1)
    return {n: (vorhersage[m] == y[m]).float().mean().item() for n, m in maske.items()}


beste_val, test_dazu = 0.0, 0.0
for epoche in range(1, 151):
    verlust = lernschritt()
    genauigkeit = pruefe()
    if genauigkeit["val"] > beste_val:
        beste_val, test_dazu = genauigkeit["val"], genauigkeit["test"]
    if epoche % 25 == 0:
        print(f"Epoche {epoche:3d}  Verlust {verlust:.4f}  train {genauigkeit['train']:.3f}  val {genauigkeit['val']:.3f}")
print(f"beste Validierung {beste_val:.3f}, Test dabei {test_dazu:.3f}")
