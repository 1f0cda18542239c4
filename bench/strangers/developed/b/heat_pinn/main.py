# Physik-informiertes Netz: u_t = 0.1 u_xx auf [0,1]^2, u(0,x) = sin(pi x), u(t,0) = u(t,1) = 0.
# Erst Adam, dann L-BFGS mit Closure. Die exakte Loesung ist bekannt und dient nur der Pruefung.
import argparse
import math

import torch
from torch import nn


class Netz(nn.Module):
    def __init__(self, breite=24, tiefe=3):
        super().__init__()
        schichten, d = [], 2
        for _ in range(tiefe):
            schichten += [nn.Linear(d, breite), nn.Tanh()]
            d = breite
        self.f = nn.Sequential(*schichten, nn.Linear(d, 1))

    def forward(self, t, x):
        return self.f(torch.cat([t, x], 1))


def ableitung(y, nach):
    return torch.autograd.grad(y, nach, torch.ones_like(y), create_graph=True)[0]


class Waermeproblem:
    def __init__(self, netz, n_innen=400, n_rand=80, seed=0):
        g = torch.Generator().manual_seed(seed)
        r = lambda n: torch.rand(n, 1, generator=g)
        self.netz = netz
        self.t, self.x = r(n_innen).requires_grad_(), r(n_innen).requires_grad_()
        self.x0 = r(n_rand)
        self.tr, self.xr = r(n_rand), (r(n_rand) > 0.5).float()

    def verlust(self):
        u = self.netz(self.t, self.x)
        u_t, u_x = ableitung(u, self.t), ableitung(u, self.x)
        rest = u_t - 0.1 * ableitung(u_x, self.x)
        anfang = self.netz(torch.zeros_like(self.x0), self.x0) - torch.sin(math.pi * self.x0)
        rand = self.netz(self.tr, self.xr)
        return rest.square().mean() + 5 * anfang.square().mean() + 5 * rand.square().mean()

    @torch.no_grad()
    def fehler(self):
        t, x = torch.meshgrid(torch.linspace(0, 1, 30), torch.linspace(0, 1, 30), indexing="ij")
        t, x = t.reshape(-1, 1), x.reshape(-1, 1)
        exakt = torch.exp(-0.1 * math.pi ** 2 * t) * torch.sin(math.pi * x)
        return ((self.netz(t, x) - exakt).norm() / exakt.norm()).item()


def adam_phase(problem, schritte):
    opt = torch.optim.Adam(problem.netz.parameters(), 5e-3)
    for _ in range(schritte):
        opt.zero_grad()
        problem.verlust().backward()
        opt.step()


def lbfgs_phase(problem, runden):
    opt = torch.optim.LBFGS(problem.netz.parameters(), max_iter=20, history_size=30, line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        v = problem.verlust()
        v.backward()
        return v

    for r in range(runden):
        v = opt.step(closure)
        print(f"L-BFGS {r}: Verlust {v.item():.2e}, rel. Fehler {problem.fehler():.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--adam", type=int, default=200)
    p.add_argument("--lbfgs", type=int, default=5)
    a = p.parse_args()
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    problem = Waermeproblem(Netz())
    adam_phase(problem, a.adam)
    print(f"nach Adam: rel. Fehler {problem.fehler():.4f}")
    lbfgs_phase(problem, a.lbfgs)
