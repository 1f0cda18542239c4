import torch
from torch import nn

from donnees import Chargeur, lire_par_classe

torch.manual_seed(42)


class Reseau(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.abandon = nn.Dropout(0.2)
        self.sortie = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.sortie(self.abandon(x.flatten(1)))


def exactitude(reseau, chargeur):
    reseau.eval()
    bons = total = 0
    with torch.no_grad():
        for x, y in chargeur:
            bons += (reseau(x).argmax(1) == y).sum().item()
            total += len(y)
    return bons / total


def principal():
    parts = lire_par_classe()
    apprentissage = Chargeur(*parts["app"], taille_lot=32, melanger=True, graine=1)
    validation = Chargeur(*parts["val"], taille_lot=128)

    reseau = Reseau()
    optimiseur = torch.optim.SGD(reseau.parameters(), lr=0.05, momentum=0.9)
    perte_fn = nn.CrossEntropyLoss()

    for epoque in range(6):
        reseau.train()
        cumul = 0.0
        for x, y in apprentissage:
            optimiseur.zero_grad()
            perte = perte_fn(reseau(x), y)
            perte.backward()
            optimiseur.step()
            cumul += perte.item()
        print(f"époque {epoque} perte {cumul / len(apprentissage):.3f} "
              f"exactitude validation {exactitude(reseau, validation):.3f}")


if __name__ == "__main__":
    principal()
