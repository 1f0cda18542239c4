import random

import torch
from torch.utils.data import DataLoader

from gnn import EnergyGNN

ATOM_E = [-0.5, -1.2, 0.3, 0.9]
BOND_E = [[0.1, -0.3, 0.2, 0.0], [-0.3, 0.4, 0.1, 0.2], [0.2, 0.1, -0.2, 0.3], [0.0, 0.2, 0.3, -0.4]]


def molecule(rnd):
    n = rnd.randint(4, 9)
    z = [rnd.randrange(4) for _ in range(n)]
    bonds = [(i, rnd.randrange(i)) for i in range(1, n)]
    y = sum(ATOM_E[a] for a in z) + sum(BOND_E[z[i]][z[j]] for i, j in bonds)
    return z, bonds, y


def collate(mols):
    z, src, dst, gid, ys = [], [], [], [], []
    for k, (atoms, bonds, y) in enumerate(mols):
        off = len(z)
        z += atoms
        gid += [k] * len(atoms)
        for i, j in bonds:
            src += [off + i, off + j]
            dst += [off + j, off + i]
        ys.append(y)
    return torch.tensor(z), torch.tensor([src, dst]), torch.tensor(gid), torch.tensor(ys)


def main():
    torch.manual_seed(2)
    rnd = random.Random(2)
    mols = [molecule(rnd) for _ in range(900)]
    train = DataLoader(mols[:700], batch_size=50, shuffle=True, collate_fn=collate)
    valid = DataLoader(mols[700:], batch_size=100, collate_fn=collate)
    model = EnergyGNN(atom_types=4)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    print(sum(p.numel() for p in model.parameters()), "parameters")
    for epoch in range(10):
        model.train()
        for z, e, gid, y in train:
            loss = torch.nn.functional.l1_loss(model(z, e, gid, len(y)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        mae = 0.0
        with torch.no_grad():
            for z, e, gid, y in valid:
                mae += (model(z, e, gid, len(y)) - y).abs().sum().item()
        print(f"epoch {epoch} mae {mae / 200:.4f}")


if __name__ == "__main__":
    main()
