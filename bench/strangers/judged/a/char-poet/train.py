# -*- coding: utf-8 -*-
# Modèle de langue caractère par caractère, avec un petit système de callbacks maison.
import math
import random

import torch
from torch import nn

SUJETS = "le vent,la mer,un oiseau,ce livre,ma lampe,la vague,un pas,le ciel".split(",")
VERBES = "ouvre,referme,regarde,emporte,cherche,oublie,appelle".split(",")
OBJETS = "la page,un rocher,le matin,sa voix,une ombre,la porte,le sable,ton nom".split(",")


def vers(graine):
    phrases = [f"{s} {v} {o}. " for s in SUJETS for v in VERBES for o in OBJETS]
    random.Random(graine).shuffle(phrases)
    return phrases


class Rappel:
    """Base : chaque crochet reçoit l'entraîneur."""
    def avant_epoque(self, e): ...
    def apres_backward(self, e): ...
    def apres_pas(self, e): ...
    def apres_epoque(self, e): ...


class Ecretage(Rappel):
    def __init__(self, norme):
        self.norme = norme

    def apres_pas(self, e):
        nn.utils.clip_grad_norm_(e.modele.parameters(), self.norme)


class Journal(Rappel):
    def avant_epoque(self, e):
        self.total, self.n = 0.0, 0

    def apres_backward(self, e):
        self.total += e.perte.item()
        self.n += 1

    def apres_epoque(self, e):
        print(f"époque {e.epoque} : train {self.total / self.n:.3f}, valid {e.valider():.3f}")


class CharLSTM(nn.Module):
    def __init__(self, n_car, caches=64):
        super().__init__()
        self.plong = nn.Embedding(n_car, 24)
        self.rnn = nn.LSTM(24, caches, batch_first=True)
        self.sortie = nn.Linear(caches, n_car)

    def forward(self, x, etat=None):
        h, etat = self.rnn(self.plong(x), etat)
        return self.sortie(h), etat


class Entraineur:
    def __init__(self, modele, opt, train, valid, rappels, long=40, lots=8):
        self.modele, self.opt, self.rappels = modele, opt, rappels
        self.train, self.valid = self._decouper(train, lots), self._decouper(valid, lots)
        self.long = long
        self.critere = nn.CrossEntropyLoss()

    @staticmethod
    def _decouper(ids, lots):
        n = len(ids) // lots
        return ids[: n * lots].view(lots, n)

    def _fenetres(self, flux):
        for i in range(0, flux.size(1) - 1, self.long):
            fin = min(i + self.long, flux.size(1) - 1)
            yield flux[:, i:fin], flux[:, i + 1:fin + 1]

    def _appeler(self, crochet):
        for r in self.rappels:
            getattr(r, crochet)(self)

    def ajuster(self, epoques):
        for self.epoque in range(epoques):
            self.modele.train()
            self._appeler("avant_epoque")
            etat = None
            for x, y in self._fenetres(self.train):
                if etat is not None:
                    etat = tuple(t.detach() for t in etat)
                logits, etat = self.modele(x, etat)
                self.perte = self.critere(logits.flatten(0, 1), y.flatten())
                self.opt.zero_grad()
                self.perte.backward()
                self._appeler("apres_backward")
                self.opt.step()
                self._appeler("apres_pas")
            self._appeler("apres_epoque")

    @torch.no_grad()
    def valider(self):
        self.modele.eval()
        etat, somme, n = None, 0.0, 0
        for x, y in self._fenetres(self.valid):
            logits, etat = self.modele(x, etat)
            somme += self.critere(logits.flatten(0, 1), y.flatten()).item() * y.numel()
            n += y.numel()
        return somme / n


if __name__ == "__main__":
    random.seed(5)
    torch.manual_seed(5)
    phrases = vers(5)
    coupe = int(0.85 * len(phrases))          # aucune phrase n'est dans les deux parties
    alphabet = sorted(set("".join(phrases)))
    coder = lambda liste: torch.tensor([alphabet.index(c) for c in "".join(liste)])
    modele = CharLSTM(len(alphabet))
    opt = torch.optim.SGD(modele.parameters(), lr=2.0)
    ent = Entraineur(modele, opt, coder(phrases[:coupe]), coder(phrases[coupe:]), [Ecretage(0.25), Journal()])
    ent.ajuster(6)
    print("perplexité", round(math.exp(ent.valider()), 2))
