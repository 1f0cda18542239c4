import numpy as np
import torch
from sklearn.datasets import load_digits


def lire_par_classe(part_validation=0.2, graine=0):
    """Charge les images dossier par dossier (un dossier = une classe) et coupe chaque classe en deux."""
    brut = load_digits()
    images = (brut.images / 16.0).astype(np.float32)
    rng = np.random.default_rng(graine)
    morceaux = {"app": [], "val": []}
    for chiffre in range(10):
        ids = np.flatnonzero(brut.target == chiffre)
        rng.shuffle(ids)
        coupe = int(len(ids) * part_validation)
        morceaux["val"].append((images[ids[:coupe]], np.full(coupe, chiffre)))
        morceaux["app"].append((images[ids[coupe:]], np.full(len(ids) - coupe, chiffre)))
    return {
        nom: (np.concatenate([x for x, _ in liste]), np.concatenate([y for _, y in liste]))
        for nom, liste in morceaux.items()
    }


class Chargeur:
    """Petit remplaçant de DataLoader, tout en mémoire."""

    def __init__(self, images, etiquettes, taille_lot, melanger=False, graine=0):
        self.images = torch.from_numpy(images).unsqueeze(1)
        self.etiquettes = torch.from_numpy(etiquettes).long()
        self.taille_lot = taille_lot
        self.melanger = melanger
        self.rng = np.random.default_rng(graine)
        self.indices = np.arange(len(etiquettes))

    def __len__(self):
        return -(-len(self.indices) // self.taille_lot)

    def __iter__(self):
        if self.melanger:
            self.rng.permutation(self.indices)
        for debut in range(0, len(self.indices), self.taille_lot):
            lot = torch.from_numpy(self.indices[debut:debut + self.taille_lot])
            yield self.images[lot], self.etiquettes[lot]
