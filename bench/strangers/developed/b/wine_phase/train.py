# Clasificación de vinos con una red pequeña.
# Basado en el esquema train/val por fases del tutorial de transfer learning.
import copy
import time

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(0)
torch.manual_seed(0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

# ---------- datos ----------
vinos = load_wine()
Xe, Xv, ye, yv = train_test_split(vinos.data, vinos.target, test_size=0.3, stratify=vinos.target, random_state=0)
escala = StandardScaler().fit(Xe)
conjuntos = {
    "train": TensorDataset(torch.tensor(escala.transform(Xe), dtype=torch.float32), torch.tensor(ye)),
    "valid": TensorDataset(torch.tensor(escala.transform(Xv), dtype=torch.float32), torch.tensor(yv)),
}
cargadores = {f: DataLoader(c, batch_size=16, shuffle=(f == "train")) for f, c in conjuntos.items()}
tam = {f: len(c) for f, c in conjuntos.items()}


# ---------- modelo ----------
class Red(nn.Module):
    def __init__(self, entradas=13, ocultas=32, clases=3):
        super().__init__()
        self.capas = nn.Sequential(
            nn.Linear(entradas, ocultas), nn.ReLU(), nn.Dropout(0.3),
            nn.Linear(ocultas, ocultas), nn.ReLU(), nn.Linear(ocultas, clases),
        )

    def forward(self, x):
        return self.capas(x)


def entrenar(modelo, criterio, optimizador, plan, epocas=10):
    inicio = time.time()
    mejor_acc = 0.0
    mejores_pesos = copy.deepcopy(modelo.state_dict())

    for epoca in range(epocas):
        for fase in ["train", "valid"]:
            if fase == "train":
                modelo.train()
            else:
                modelo.eval()

            perdida_acum, aciertos = 0.0, 0
            for entradas, etiquetas in cargadores[fase]:
                entradas = entradas.to(device)
                etiquetas = etiquetas.to(device)

                optimizador.zero_grad()
                with torch.set_grad_enabled(fase != "val"):
                    salidas = modelo(entradas)
                    _, pred = torch.max(salidas, 1)
                    perdida = criterio(salidas, etiquetas)
                    if fase == "train":
                        perdida.backward()
                        optimizador.step()

                perdida_acum += perdida.item() * entradas.size(0)
                aciertos += torch.sum(pred == etiquetas).item()

            if fase == "train":
                plan.step()
            acc = aciertos / tam[fase]
            print(f"época {epoca} {fase:5s} pérdida {perdida_acum / tam[fase]:.4f} acc {acc:.4f}")
            if fase == "valid" and acc > mejor_acc:
                mejor_acc = acc
                mejores_pesos = copy.deepcopy(modelo.state_dict())

    print(f"terminado en {time.time() - inicio:.1f}s, mejor acc de validación {mejor_acc:.4f}")
    modelo.load_state_dict(mejores_pesos)
    return modelo


if __name__ == "__main__":
    red = Red().to(device)
    opt = torch.optim.SGD(red.parameters(), lr=0.05, momentum=0.9)
    entrenar(red, nn.CrossEntropyLoss(), opt, lr_scheduler.StepLR(opt, step_size=5, gamma=0.3))
