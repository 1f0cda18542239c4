"""Toy molecular property regression with a hand-rolled message passing network."""
import argparse
import random

import torch
import torch.nn as nn

N_ATOM, N_BOND = 5, 3


def random_molecule(rng):
    n = rng.randint(5, 10)
    atoms = torch.tensor([rng.randrange(N_ATOM) for _ in range(n)])
    src, dst, bond = [], [], []
    for v in range(1, n):
        u, b = rng.randrange(v), rng.randrange(N_BOND)
        src += [u, v]
        dst += [v, u]
        bond += [b, b]
    edge_index, bond = torch.tensor([src, dst]), torch.tensor(bond)
    strength = (atoms[edge_index[0]].float() - 2) * (bond.float() + 1) * 0.1
    target = strength.sum() / n + 0.3 * torch.sin(atoms.float()).mean()
    return atoms, edge_index, bond, target


def collate(mols):
    atoms, edges, bonds, batch, ys, off = [], [], [], [], [], 0
    for i, (a, e, b, y) in enumerate(mols):
        atoms.append(a)
        edges.append(e + off)
        bonds.append(b)
        batch.append(torch.full((len(a),), i))
        ys.append(y)
        off += len(a)
    return torch.cat(atoms), torch.cat(edges, 1), torch.cat(bonds), torch.cat(batch), torch.stack(ys)


class EdgeConv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.edge_proj = nn.Linear(dim, dim)
        self.msg = nn.Linear(dim, dim)
        self.upd = nn.GRUCell(dim, dim)

    def forward(self, h, edge_index, e):
        src, dst = edge_index
        gate = torch.sigmoid(self.edge_proj(e))
        m = torch.relu(self.msg(h[src]))
        agg = torch.zeros_like(h).index_add(0, dst, m)
        return self.upd(agg, h)


class MolNet(nn.Module):
    def __init__(self, dim=32, depth=3):
        super().__init__()
        self.atom_emb = nn.Embedding(N_ATOM, dim)
        self.bond_emb = nn.Embedding(N_BOND, dim)
        self.convs = nn.ModuleList(EdgeConv(dim) for _ in range(depth))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, atoms, edge_index, bonds, batch, n_graphs):
        h, e = self.atom_emb(atoms), self.bond_emb(bonds)
        for conv in self.convs:
            h = conv(h, edge_index, e)
        pooled = h.new_zeros(n_graphs, h.size(1)).index_add(0, batch, h)
        count = torch.bincount(batch, minlength=n_graphs).unsqueeze(1)
        return self.readout(pooled / count).squeeze(-1)


def iterate(mols, size, rng=None):
    idx = list(range(len(mols)))
    if rng is not None:
        rng.shuffle(idx)
    for s in range(0, len(idx), size):
        chunk = [mols[i] for i in idx[s:s + size]]
        yield collate(chunk), len(chunk)


def main(a):
    torch.manual_seed(a.seed)
    rng = random.Random(a.seed)
    train, test = ([random_molecule(rng) for _ in range(n)] for n in (600, 150))
    model = MolNet(a.dim)
    optim = torch.optim.Adam(model.parameters(), a.lr)
    for ep in range(a.epochs):
        model.train()
        se = 0.0
        for (at, ei, bo, ba, y), n in iterate(train, a.bs, rng):
            optim.zero_grad()
            loss = nn.functional.mse_loss(model(at, ei, bo, ba, n), y)
            loss.backward()
            optim.step()
            se += loss.item() * n
        print(f"{ep:2d} mse {se / len(train):.4f}")
    model.eval()
    with torch.no_grad():
        se = sum(((model(at, ei, bo, ba, n) - y) ** 2).sum().item() for (at, ei, bo, ba, y), n in iterate(test, a.bs))
    print(f"test rmse {(se / len(test)) ** 0.5:.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=32)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--bs", type=int, default=50)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--seed", type=int, default=0)
    main(ap.parse_args())
