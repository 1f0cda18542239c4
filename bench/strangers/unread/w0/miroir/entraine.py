"""Un petit transformeur apprend à renverser des suites de chiffres."""
import math

import torch
from torch import nn

DEBUT, VOCAB, LONGUEUR = 10, 11, 8


class Renverseur(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.plongement = nn.Embedding(VOCAB, dim)
        self.register_buffer("position", self.sinus(LONGUEUR + 1, dim))
        self.coeur = nn.Transformer(dim, 4, 2, 2, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.sortie = nn.Linear(dim, VOCAB)

    @staticmethod
    def sinus(n, dim):
        p = torch.arange(n)[:, None] * torch.exp(torch.arange(0, dim, 2) * (-math.log(1e4) / dim))
        return torch.stack([p.sin(), p.cos()], -1).flatten(1)

    def forward(self, source, cible):
        masque = nn.Transformer.generate_square_subsequent_mask(cible.size(1))
        s = self.plongement(source) + self.position[:source.size(1)]
        c = self.plongement(cible) + self.position[:cible.size(1)]
        return self.sortie(self.coeur(s, c, tgt_mask=masque, tgt_is_causal=True))


class Chauffeur:
    """Réchauffement linéaire puis décroissance en racine, autour d'un optimiseur ordinaire."""

    def __init__(self, optimiseur, dim, palier):
        self.optimiseur, self.dim, self.palier = optimiseur, dim, palier
        self.pas = 0

    def taux(self):
        return self.dim**-0.5 * min(self.pas**-0.5, self.pas * self.palier**-1.5)

    def zero_grad(self):
        self.optimiseur.zero_grad(set_to_none=True)

    def step(self):
        self.pas += 1
        for groupe in self.optimiseur.param_groups:
            groupe["lr"] = self.taux()

    def state_dict(self):
        return {"pas": self.pas, "optimiseur": self.optimiseur.state_dict()}


def lot(n, generateur=None):
    source = torch.randint(0, 10, (n, LONGUEUR), generator=generateur)
    attendu = source.flip(1)
    entree = torch.cat([torch.full((n, 1), DEBUT), attendu[:, :-1]], 1)
    return source, entree, attendu


def precision(modele, n=256):
    modele.eval()
    source, entree, attendu = lot(n, torch.Generator().manual_seed(123))
    with torch.no_grad():
        juste = (modele(source, entree).argmax(-1) == attendu).float().mean().item()
    modele.train()
    return juste


def principal(pas=240):
    torch.manual_seed(6)
    modele = Renverseur()
    chauffeur = Chauffeur(torch.optim.Adam(modele.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9), 48, palier=600)
    entropie = nn.CrossEntropyLoss()
    modele.train()
    for i in range(1, pas + 1):
        source, entree, attendu = lot(64)
        perte = entropie(modele(source, entree).flatten(0, 1), attendu.flatten())
        chauffeur.zero_grad()
        perte.backward()
        nn.utils.clip_grad_norm_(modele.parameters(), 1.0)
        chauffeur.step()
        if i % 60 == 0:
            print(f"pas {i} perte {perte.item():.3f} précision {precision(modele):.3f} taux {chauffeur.taux():.5f}")
    torch.save({"modele": modele.state_dict(), "chauffeur": chauffeur.state_dict()}, "miroir.pt")


if __name__ == "__main__":
    principal()
