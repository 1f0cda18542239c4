# -*- coding: utf-8 -*-
"""Entites nommees dans des phrases synthetiques, BiLSTM."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

PRENOMS = "anne luc marie paul zoe".split()
VILLES = "paris lyon nantes lille brest".split()
VERBES = "habite visite quitte aime".split()
AUTRES = "le la petite grande ville de nord sud avec son ami hier".split()
ETIQUETTES = ["O", "B-PER", "B-LOC", "I-LOC"]


def phrase(alea):
    mots, tags = [alea.choice(PRENOMS), alea.choice(VERBES)], [1, 0]
    for _ in range(alea.randint(0, 5)):
        mots.append(alea.choice(AUTRES))
        tags.append(0)
    mots.append(alea.choice(VILLES))
    tags.append(2)
    if alea.random() < 0.4:
        mots.append(alea.choice(["nord", "sud"]))
        tags.append(3)
    return mots, tags


class Collecteur:
    remplissage_mot = 0
    remplissage_tag = -1

    def __init__(self, vocabulaire):
        self.vocabulaire = vocabulaire

    def __call__(self, lot):
        lot = sorted(lot, key=lambda e: -len(e[0]))
        mots = [torch.tensor([self.vocabulaire[m] for m in ms]) for ms, _ in lot]
        tags = [torch.tensor(ts) for _, ts in lot]
        longueurs = torch.tensor([len(m) for m in mots])
        return (pad_sequence(mots, True, self.remplissage_mot),
                pad_sequence(tags, True, self.remplissage_tag), longueurs)


class Etiqueteur(nn.Module):
    def __init__(self, n_mots, n_tags, dim=24, cache=32):
        super().__init__()
        self.plongement = nn.Embedding(n_mots, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, cache, bidirectional=True, batch_first=True)
        self.sortie = nn.Linear(2 * cache, n_tags)

    def forward(self, mots, longueurs):
        p = pack_padded_sequence(self.plongement(mots), longueurs, batch_first=True)
        h, _ = pad_packed_sequence(self.lstm(p)[0], batch_first=True)
        return self.sortie(h)


def exactitude(modele, lots):
    modele.eval()
    bons = total = 0
    with torch.no_grad():
        for mots, tags, longueurs in lots:
            utile = mots != Collecteur.remplissage_mot
            bons += (modele(mots, longueurs).argmax(-1) == tags)[utile].sum().item()
            total += utile.sum().item()
    return bons / total


if __name__ == "__main__":
    torch.manual_seed(3)
    alea = random.Random(3)
    phrases = [phrase(alea) for _ in range(500)]
    vocabulaire = {m: i + 1 for i, m in enumerate(sorted(set(PRENOMS + VILLES + VERBES + AUTRES)))}
    coll = Collecteur(vocabulaire)
    apprentissage = DataLoader(phrases[:400], 20, shuffle=True, collate_fn=coll)
    controle = DataLoader(phrases[400:], 50, collate_fn=coll)
    modele = Etiqueteur(len(vocabulaire) + 1, len(ETIQUETTES))
    critere = nn.CrossEntropyLoss()
    opt = torch.optim.Adam(modele.parameters(), lr=5e-3)
    for epoque in range(4):
        modele.train()
        for mots, tags, longueurs in apprentissage:
            scores = modele(mots, longueurs)
            perte = critere(scores.reshape(-1, len(ETIQUETTES)), tags.reshape(-1))
            opt.zero_grad()
            perte.backward()
            opt.step()
        print(epoque, perte.item(), exactitude(modele, controle))
