# Conjuntos de compras por cliente -> probabilidad de abandono. Hay clientes sin compras (conjunto vacío).
import math

import torch
import torch.nn as nn

torch.manual_seed(19)


class PoolAtencion(nn.Module):
    """Atención con una clave nula aprendida: la primera posición nunca se enmascara."""

    def __init__(self, d, cabezas=2):
        super().__init__()
        self.h, self.d = cabezas, d
        self.nula = nn.Parameter(torch.randn(1, 1, d) * 0.02)
        self.consulta = nn.Parameter(torch.randn(cabezas, d // cabezas) * 0.1)
        self.kv = nn.Linear(d, 2 * d)
        self.salida = nn.Linear(d, d)

    def forward(self, x, relleno):
        b = x.size(0)
        x = torch.cat([self.nula.expand(b, -1, -1), x], dim=1)
        relleno = torch.cat([relleno.new_zeros(b, 1), relleno], dim=1)
        k, v = self.kv(x).view(b, x.size(1), 2, self.h, -1).unbind(2)
        puntaje = torch.einsum("hc,blhc->bhl", self.consulta, k) / math.sqrt(self.d // self.h)
        puntaje = puntaje.masked_fill(relleno[:, None], float("-inf"))
        return self.salida(torch.einsum("bhl,blhc->bhc", puntaje.softmax(-1), v).reshape(b, self.d))


class Abandono(nn.Module):
    def __init__(self, n_var=3, d=16):
        super().__init__()
        self.codifica = nn.Sequential(nn.Linear(n_var, d), nn.ReLU(), nn.Linear(d, d))
        self.pool = PoolAtencion(d)
        self.cabeza = nn.Sequential(nn.ReLU(), nn.Linear(d, 1))

    def forward(self, compras, relleno):
        return self.cabeza(self.pool(self.codifica(compras), relleno)).squeeze(-1)


def clientes(n, max_compras=8):
    largo = torch.randint(0, max_compras + 1, (n,))
    compras = torch.randn(n, max_compras, 3)
    relleno = torch.arange(max_compras)[None] >= largo[:, None]
    compras = compras.masked_fill(relleno[..., None], 0.0)
    mejor = compras[..., 0].masked_fill(relleno, -1.0).amax(1)
    return compras, relleno, (mejor < 0.4).float()


entreno, prueba = clientes(1500), clientes(400)
red = Abandono()
opt = torch.optim.AdamW(red.parameters(), lr=4e-3)

for epoca in range(8):
    red.train()
    acumulado = 0.0
    for idx in torch.randperm(1500).split(60):
        x, m, y = (t[idx] for t in entreno)
        perdida = nn.functional.binary_cross_entropy_with_logits(red(x, m), y)
        opt.zero_grad()
        perdida.backward()
        opt.step()
        acumulado += perdida.item() * len(idx)
    print(f"época {epoca}: {acumulado / 1500:.4f}")

red.eval()
with torch.no_grad():
    x, m, y = prueba
    print("exactitud:", ((red(x, m) > 0) == y.bool()).float().mean().item())
