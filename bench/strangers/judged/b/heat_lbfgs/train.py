# PINN für die 1D-Wärmeleitung u_t = k u_xx, u(x,0)=sin(pi x), u(0,t)=u(1,t)=0.
# Erst Adam zum Einschwingen, dann L-BFGS mit fester Kollokation (volle Stapel, kein Mischen nötig).
import math
import torch
from torch import nn

torch.manual_seed(12)
torch.set_default_dtype(torch.float64)
k = 0.1


class Netz(nn.Module):
    def __init__(self, breite=24, tiefe=3):
        super().__init__()
        schichten = [nn.Linear(2, breite), nn.Tanh()]
        for _ in range(tiefe - 1):
            schichten += [nn.Linear(breite, breite), nn.Tanh()]
        self.f = nn.Sequential(*schichten, nn.Linear(breite, 1))

    def forward(self, x, t):
        # Rand- und Anfangswerte sind durch den Ansatz exakt erfüllt
        return torch.sin(math.pi * x) + t * x * (1 - x) * self.f(torch.cat([x, t], 1))


def residuum(netz, x, t):
    x, t = x.requires_grad_(), t.requires_grad_()
    u = netz(x, t)
    eins = torch.ones_like(u)
    u_x, u_t = torch.autograd.grad(u, (x, t), eins, create_graph=True)
    u_xx, = torch.autograd.grad(u_x, x, eins, create_graph=True)
    return u_t - k * u_xx


def fehler(netz):
    xs = torch.linspace(0, 1, 41)
    X, T = torch.meshgrid(xs, xs, indexing="ij")
    with torch.no_grad():
        u = netz(X.reshape(-1, 1), T.reshape(-1, 1)).reshape(X.shape)
    exakt = torch.exp(-k * math.pi ** 2 * T) * torch.sin(math.pi * X)
    return ((u - exakt).norm() / exakt.norm()).item()


netz = Netz()
punkte = torch.rand(400, 2)
xk, tk = punkte[:, :1].clone(), punkte[:, 1:].clone()

adam = torch.optim.Adam(netz.parameters(), lr=3e-3)
for schritt in range(150):
    adam.zero_grad()
    verlust = residuum(netz, xk, tk).pow(2).mean()
    verlust.backward()
    adam.step()
print(f"Adam    Verlust {verlust.item():.3e}  relativer Fehler {fehler(netz):.3e}")

lbfgs = torch.optim.LBFGS(netz.parameters(), lr=1.0, max_iter=20, history_size=20, line_search_fn="strong_wolfe")


def schliessen():
    lbfgs.zero_grad()
    wert = residuum(netz, xk, tk).pow(2).mean()
    wert.backward()
    return wert


for runde in range(5):
    verlust = lbfgs.step(schliessen)
    print(f"L-BFGS {runde} Verlust {float(verlust.detach()):.3e}  relativer Fehler {fehler(netz):.3e}")
