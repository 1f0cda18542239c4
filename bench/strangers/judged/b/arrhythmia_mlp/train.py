# Practica 3 - Clasificacion de latidos (clase rara = arritmia)
# Autor: grupo 12

import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split

SEMILLA = 123
np.random.seed(SEMILLA)
torch.manual_seed(SEMILLA)

# ---------------------------------------------------------------
# 1. Generar los latidos sinteticos (cada latido: 60 muestras)
# ---------------------------------------------------------------
N_NORMALES = 900
N_RAROS = 45
t = np.linspace(0, 1, 60)


def latido_normal():
    centro = 0.5 + 0.03 * np.random.randn()
    return np.exp(-((t - centro) ** 2) / 0.004) + 0.25 * np.random.randn(60)


def latido_raro():
    centro = 0.5 + 0.08 * np.random.randn()
    ancho = 0.006 + 0.004 * np.random.rand()
    return 0.8 * np.exp(-((t - centro) ** 2) / ancho) + 0.25 * np.random.randn(60)


X = np.array([latido_normal() for _ in range(N_NORMALES)] + [latido_raro() for _ in range(N_RAROS)])
y = np.array([0] * N_NORMALES + [1] * N_RAROS)
print("Latidos:", X.shape, " raros:", y.sum())

# ---------------------------------------------------------------
# 2. Las clases estan muy desbalanceadas -> balanceamos
# ---------------------------------------------------------------
idx_raros = np.where(y == 1)[0]
extra = np.random.choice(idx_raros, size=N_NORMALES - N_RAROS, replace=True)
X = np.concatenate([X, X[extra]])
y = np.concatenate([y, y[extra]])
print("Despues de balancear:", np.bincount(y))

# ---------------------------------------------------------------
# 3. Separar entrenamiento y prueba
# ---------------------------------------------------------------
X_ent, X_pru, y_ent, y_pru = train_test_split(X, y, test_size=0.2, stratify=y, random_state=SEMILLA)

media = X_ent.mean()
desv = X_ent.std()
X_ent = torch.tensor((X_ent - media) / desv, dtype=torch.float32)
X_pru = torch.tensor((X_pru - media) / desv, dtype=torch.float32)
y_ent = torch.tensor(y_ent)
y_pru = torch.tensor(y_pru)

# ---------------------------------------------------------------
# 4. La red
# ---------------------------------------------------------------
red = nn.Sequential(
    nn.Linear(60, 64), nn.ReLU(), nn.Dropout(0.2),
    nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, 2),
)
optimizador = torch.optim.Adam(red.parameters(), lr=1e-3)
perdida = nn.CrossEntropyLoss()
LOTE = 50

# ---------------------------------------------------------------
# 5. Entrenamiento
# ---------------------------------------------------------------
for epoca in range(12):
    red.train()
    orden = torch.randperm(len(X_ent))
    total = 0.0
    for i in range(0, len(orden), LOTE):
        b = orden[i:i + LOTE]
        optimizador.zero_grad()
        l = perdida(red(X_ent[b]), y_ent[b])
        l.backward()
        optimizador.step()
        total += l.item() * len(b)

    red.eval()
    with torch.no_grad():
        pred = red(X_pru).argmax(1)
    sens = (pred[y_pru == 1] == 1).float().mean().item()
    espe = (pred[y_pru == 0] == 0).float().mean().item()
    print(f"epoca {epoca:2d} perdida={total / len(orden):.4f} sensibilidad={sens:.3f} especificidad={espe:.3f}")
