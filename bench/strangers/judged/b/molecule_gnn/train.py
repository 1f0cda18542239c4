import random
import time
from collections import defaultdict
from types import SimpleNamespace as NS

import numpy as np
import torch
from torch import nn

# graph regression: predict (scaled) number of triangles of a random graph, dense batched message passing

cfg = NS(seed=8, nodes=12, feat=4, hidden=32, layers=3, n=dict(train=320, val=96), bs=32, epochs=5, lr=2e-3)
GRAD = {"train": torch.enable_grad, "valid": torch.no_grad, "test": torch.no_grad}


def sample_graphs(n, gen):
    p = 0.15 + 0.35 * torch.rand(n, 1, 1, generator=gen)
    up = (torch.rand(n, cfg.nodes, cfg.nodes, generator=gen) < p).float().triu(1)
    adj = up + up.transpose(1, 2)
    tri = torch.diagonal(adj @ adj @ adj, dim1=1, dim2=2).sum(1) / 6
    deg = adj.sum(-1, keepdim=True)
    x = torch.cat([deg / cfg.nodes, torch.randn(n, cfg.nodes, cfg.feat - 1, generator=gen)], -1)
    return x, adj, tri.log1p()


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.msg = nn.Sequential(nn.Linear(d, d), nn.ReLU())
        self.upd = nn.GRUCell(d, d)

    def forward(self, h, adj):
        m = adj @ self.msg(h)
        return self.upd(m.flatten(0, 1), h.flatten(0, 1)).view_as(h)


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(cfg.feat, cfg.hidden)
        self.layers = nn.ModuleList(Layer(cfg.hidden) for _ in range(cfg.layers))
        self.read = nn.Sequential(nn.Linear(2 * cfg.hidden, cfg.hidden), nn.ReLU(), nn.Dropout(0.1),
                                  nn.Linear(cfg.hidden, 1))

    def forward(self, x, adj):
        h = self.inp(x)
        for layer in self.layers:
            h = h + layer(h, adj)
        return self.read(torch.cat([h.mean(1), h.amax(1)], -1)).squeeze(-1)


class Run:
    def __init__(self):
        gen = torch.Generator().manual_seed(cfg.seed)
        self.sets = {k: sample_graphs(n, gen) for k, n in cfg.n.items()}
        y = self.sets["train"][2]
        self.mu, self.sd = y.mean(), y.std()
        self.net = GraphNet()
        self.opt = torch.optim.Adam(self.net.parameters(), cfg.lr)
        self.log = defaultdict(list)

    def batches(self, phase):
        data = self.sets[phase]
        order = torch.randperm(len(data[0])) if phase == "train" else torch.arange(len(data[0]))
        for ix in order.split(cfg.bs):
            yield tuple(t[ix] for t in data)

    def phase(self, name):
        learn = name == "train"
        self.net.train(learn)
        se, n, t0 = 0.0, 0, time.perf_counter()
        with GRAD.get(name, torch.enable_grad)():
            for x, adj, y in self.batches(name):
                loss = nn.functional.mse_loss(self.net(x, adj), (y - self.mu) / self.sd)
                if learn:
                    self.opt.zero_grad(set_to_none=True)
                    loss.backward()
                    self.opt.step()
                se, n = se + loss.item() * len(y), n + len(y)
        self.log[name].append(se / n)
        return f"{name} {se / n:.4f} ({time.perf_counter() - t0:.2f}s)"


if __name__ == "__main__":
    random.seed(cfg.seed), np.random.seed(cfg.seed), torch.manual_seed(cfg.seed)
    run = Run()
    for e in range(cfg.epochs):
        print(e, " | ".join(run.phase(p) for p in cfg.n))
