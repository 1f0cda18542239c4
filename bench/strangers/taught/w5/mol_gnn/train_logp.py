"""Regress logP from the atom types and bonds. Usage: python train_logp.py data/zinc_small.pt"""
import sys

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from layers import MolNet

device = torch.device("cuda:0")
EPOCHS = 50


def collate(mols):
    zs, edges, batch, ys, offset = [], [], [], [], 0
    for i, m in enumerate(mols):
        zs.append(m["z"])
        edges.append(m["bonds"] + offset)
        batch.append(torch.full_like(m["z"], i))
        ys.append(m["logp"])
        offset += len(m["z"])
    return torch.cat(zs), torch.cat(edges, dim=1), torch.cat(batch), torch.tensor(ys)


def run(model, loader, opt=None):
    model.train(opt is not None)
    total, n = 0.0, 0
    with torch.set_grad_enabled(opt is not None):
        for z, e, b, y in loader:
            z, e, b, y = z.to(device), e.to(device), b.to(device), y.to(device)
            pred = model(z, e, b, len(y))
            loss = F.l1_loss(pred, y)
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item() * len(y)
            n += len(y)
    return total / n


def main():
    torch.manual_seed(0)
    mols = torch.load(sys.argv[1])
    perm = torch.randperm(len(mols)).tolist()
    cut = int(0.9 * len(mols))
    train = [mols[i] for i in perm[:cut]]
    test = [mols[i] for i in perm[cut:]]
    train_loader = DataLoader(train, batch_size=128, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(test, batch_size=256, collate_fn=collate)

    model = MolNet(n_atom_types=100).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS)
    for epoch in range(EPOCHS):
        tr = run(model, train_loader, opt)
        te = run(model, test_loader)
        sched.step()
        print(f"{epoch:3d}  train MAE {tr:.4f}  test MAE {te:.4f}")
    torch.save(model.state_dict(), "molnet.pt")


if __name__ == "__main__":
    main()
