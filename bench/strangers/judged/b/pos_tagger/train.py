# Étiqueteur morpho-syntaxique minimal (Transformer encodeur), corpus jouet.
import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

GRAINE = 17
random.seed(GRAINE)
np.random.seed(GRAINE)
torch.manual_seed(GRAINE)

LEXIQUE = {
    "DET": ["le", "la", "un", "une", "ce"],
    "NOM": ["chat", "chien", "livre", "porte", "marche", "ferme"],
    "VERBE": ["mange", "lit", "ferme", "marche", "porte", "voit"],
    "ADJ": ["petit", "ferme", "grand", "rouge"],
    "PREP": ["dans", "sur", "avec"],
}
ETIQ = ["<pad>"] + list(LEXIQUE)
MOTS = ["<pad>"] + sorted({m for ms in LEXIQUE.values() for m in ms})
m2i = {m: i for i, m in enumerate(MOTS)}
e2i = {e: i for i, e in enumerate(ETIQ)}
PAD = 0


def groupe(r):
    g = ["DET"] + (["ADJ"] if r.random() < 0.4 else []) + ["NOM"]
    return g + (["ADJ"] if r.random() < 0.2 else [])


def phrase(r):
    p = groupe(r) + ["VERBE"]
    if r.random() < 0.8:
        p += groupe(r)
    while r.random() < 0.4 and len(p) < 24:
        p += ["PREP"] + groupe(r)
    mots = [r.choice(LEXIQUE[e]) for e in p]
    return torch.tensor([m2i[m] for m in mots]), torch.tensor([e2i[e] for e in p])


def assembler(lot):
    xs, ys = zip(*lot)
    return pad_sequence(xs, True, PAD), pad_sequence(ys, True, PAD)


class EntropieLissee(nn.Module):
    """Entropie croisée avec lissage des étiquettes, écrite à la main pour pouvoir régler la masse résiduelle."""

    def __init__(self, n_classes, lissage=0.1, ignore=PAD):
        super().__init__()
        self.n, self.eps, self.ignore = n_classes, lissage, ignore

    def forward(self, logits, cible):
        logp = logits.log_softmax(-1).reshape(-1, self.n)
        cible = cible.reshape(-1)
        nll = -logp.gather(1, cible[:, None]).squeeze(1)
        uniforme = -logp.mean(1)
        return ((1 - self.eps) * nll + self.eps * uniforme).mean()


class Etiqueteur(nn.Module):
    def __init__(self, d=32, tetes=4, couches=2, lmax=40):
        super().__init__()
        self.mot = nn.Embedding(len(MOTS), d, padding_idx=PAD)
        self.pos = nn.Embedding(lmax, d)
        bloc = nn.TransformerEncoderLayer(d, tetes, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(bloc, couches, enable_nested_tensor=False)
        self.sortie = nn.Linear(d, len(ETIQ))

    def forward(self, x):
        h = self.mot(x) + self.pos(torch.arange(x.size(1), device=x.device))
        return self.sortie(self.enc(h, src_key_padding_mask=x.eq(PAD)))


r_app, r_dev = random.Random(1), random.Random(2)
app = DataLoader([phrase(r_app) for _ in range(500)], batch_size=25, shuffle=True, collate_fn=assembler)
dev = DataLoader([phrase(r_dev) for _ in range(100)], batch_size=50, collate_fn=assembler)

reseau = Etiqueteur()
critere = EntropieLissee(len(ETIQ), lissage=0.05)
optim = torch.optim.AdamW(reseau.parameters(), lr=2e-3)

for epoque in range(4):
    reseau.train()
    cumul = 0.0
    for x, y in app:
        optim.zero_grad()
        perte = critere(reseau(x), y)
        perte.backward()
        nn.utils.clip_grad_norm_(reseau.parameters(), 1.0)
        optim.step()
        cumul += perte.item()
    reseau.eval()
    justes = total = 0
    with torch.no_grad():
        for x, y in dev:
            vrai = y.ne(PAD)
            justes += (reseau(x).argmax(-1).eq(y) & vrai).sum().item()
            total += vrai.sum().item()
    print(f"époque {epoque}  perte {cumul / len(app):.3f}  exactitude {justes / total:.3f}")
