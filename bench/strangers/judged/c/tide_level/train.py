# Previsão do nível da maré a partir de pressão e vento + fase lunar
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(55)
torch.manual_seed(55)

PERIODOS = (12.42, 12.0, 25.82)   # M2, S2, O1 em horas


def gerar(t0, n):
    t = np.arange(t0, t0 + n, dtype=np.int64)
    vento = rng.standard_normal(n).astype(np.float32)
    pressao = rng.standard_normal(n).astype(np.float32)
    nivel = sum(a * np.sin(2 * np.pi * t / p) for a, p in zip((1.2, 0.5, 0.3), PERIODOS))
    nivel = nivel + 0.2 * vento * np.abs(vento) - 0.15 * pressao
    return t, np.stack([vento, pressao], 1), nivel.astype(np.float32)


def fase(t):
    """codificação harmônica do instante"""
    ang = 2 * np.pi * t[:, None] / np.asarray(PERIODOS)
    return np.concatenate([np.sin(ang), np.cos(ang)], axis=1)


def lotes(t, clima, nivel, tamanho, embaralhar):
    idx = rng.permutation(len(t)) if embaralhar else np.arange(len(t))
    for i in range(0, len(idx), tamanho):
        s = idx[i:i + tamanho]
        x = torch.cat([torch.from_numpy(clima[s]), torch.from_numpy(fase(t[s]))], dim=1)
        yield x, torch.from_numpy(nivel[s])


rede = nn.Sequential(
    nn.Linear(2 + 2 * len(PERIODOS), 40),
    nn.Softplus(),
    nn.Linear(40, 40),
    nn.Softplus(),
    nn.Linear(40, 1),
    nn.Flatten(0),
)

treino = gerar(0, 1500)
teste = gerar(1500, 400)
otimizador = torch.optim.RMSprop(rede.parameters(), lr=2e-3)

for epoca in range(1, 11):
    rede.train()
    soma, n = 0.0, 0
    for x, alvo in lotes(*treino, tamanho=50, embaralhar=True):
        otimizador.zero_grad()
        erro = nn.functional.mse_loss(rede(x), alvo)
        erro.backward()
        otimizador.step()
        soma += erro.item() * len(alvo)
        n += len(alvo)
    print(f"época {epoca:02d}  mse {soma / n:.4f}")

rede.eval()
with torch.no_grad():
    se = sum(((rede(x) - a) ** 2).sum().item() for x, a in lotes(*teste, tamanho=200, embaralhar=False))
print("rmse no teste:", (se / len(teste[0])) ** 0.5)
