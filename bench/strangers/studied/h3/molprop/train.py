from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader

from inference import regression_report
from molecules import ToyMolecules, collate
from mpnn import MPNN


@dataclass
class Hparams:
    dim: int = 32
    rounds: int = 3
    lr: float = 4e-3
    epochs: int = 5
    batch: int = 32


def main(hp: Hparams = Hparams()):
    torch.manual_seed(6)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = DataLoader(ToyMolecules(500, 0), hp.batch, shuffle=True, collate_fn=collate)
    valid = DataLoader(ToyMolecules(200, 1), 100, collate_fn=collate)
    model = MPNN(hp.dim, hp.rounds).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=hp.lr)
    for epoch in range(hp.epochs):
        model.train()
        for kind, adj, mask, y in train:
            pred = model(kind.to(device), adj.to(device), mask.to(device))
            loss = torch.nn.functional.mse_loss(pred, y.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
        report = regression_report(model, valid, device)
        print(epoch, {k: round(v, 4) for k, v in report.items()})


if __name__ == "__main__":
    main()
