# PINN für den gedämpften Oszillator  u'' + 2*d*u' + w0^2*u = 0,  u(0)=1, u'(0)=0
# Erst ein paar Schritte Adam, dann L-BFGS mit Closure bis zur Konvergenz.
import math

import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)

D, W0, T_END = 0.5, 4.0, 2.0


def exakt(t):
    w = math.sqrt(W0 ** 2 - D ** 2)
    return torch.exp(-D * t) * (torch.cos(w * t) + D / w * torch.sin(w * t))


class Feld(nn.Module):
    def __init__(self, n=24):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(1, n), nn.Tanh(), nn.Linear(n, n), nn.Tanh(), nn.Linear(n, 1))

    def forward(self, t):
        return self.f(t / T_END)


def ableitung(u, t):
    return torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]


netz = Feld()
t_kol = torch.linspace(0, T_END, 60).view(-1, 1).requires_grad_(True)
t_0 = torch.zeros(1, 1, requires_grad=True)


def verlust():
    u0 = netz(t_0)
    anfang = (u0 - 1).pow(2).mean() + 0.1 * ableitung(u0, t_0).pow(2).mean()
    u = netz(t_kol)
    du = ableitung(u, t_kol)
    ddu = ableitung(du, t_kol)
    rest = ddu + 2 * D * du + W0 ** 2 * u
    return anfang + 1e-3 * rest.pow(2).mean()


def fehler():
    t = torch.rand(200, 1, generator=torch.Generator().manual_seed(1)) * T_END
    netz.eval()
    with torch.no_grad():
        e = (netz(t) - exakt(t)).abs().max().item()
    netz.train()
    return e


adam = torch.optim.Adam(netz.parameters(), lr=5e-3)
for i in range(200):
    adam.zero_grad()
    l = verlust()
    l.backward()
    adam.step()
print(f"nach Adam:    Verlust {l.item():.2e}  max. Fehler {fehler():.3f}")

lbfgs = torch.optim.LBFGS(netz.parameters(), lr=1.0, max_iter=40, history_size=30, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    l = verlust()
    l.backward()
    return l


for runde in range(10):
    l = lbfgs.step(closure)
    if (runde + 1) % 5 == 0:
        print(f"L-BFGS {runde + 1:2d}:    Verlust {l.item():.2e}  max. Fehler {fehler():.4f}")
