"""Solubility-like property of toy molecules given as sets of atoms."""
import torch
from torch import nn

CFG = {
    "seed": 10,
    "data": {"train": 1200, "test": 300, "atoms": 12, "kinds": 6},
    "model": {"dim": 32},
    "optim": {"groups": {"embed": 5e-3, "encoder": 2e-3, "head": 5e-3}, "weight_decay": 1e-3},
    "epochs": 12,
    "batch": 50,
}


def molecules(n, atoms, kinds, gen):
    kind = torch.randint(kinds, (n, atoms), generator=gen)
    charge = torch.randn(n, atoms, generator=gen)
    present = torch.arange(atoms)[None] < torch.randint(4, atoms + 1, (n, 1), generator=gen)
    polarity = torch.linspace(-1, 1, kinds)[kind]
    value = ((polarity + 0.5 * charge.tanh() * polarity.abs()) * present).sum(1) / present.sum(1).sqrt()
    return kind, charge, present, 3.0 + 2.0 * value


class SetModel(nn.Module):
    def __init__(self, kinds, dim):
        super().__init__()
        self.embed = nn.Embedding(kinds, dim)
        self.encoder = nn.Sequential(nn.Linear(dim + 1, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU())
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, kind, charge, present):
        atoms = self.encoder(torch.cat([self.embed(kind), charge[..., None]], -1))
        w = present[..., None].float()
        return self.readout((atoms * w).sum(1) / w.sum(1).sqrt())[:, 0]


def build_optimizer(model, cfg):
    groups = []
    for prefix, lr in cfg["groups"].items():
        members = [p for n, p in model.named_parameters() if n.split(".")[0] == prefix]
        groups.append({"params": members, "lr": lr, "name": prefix})
    return torch.optim.AdamW(groups, weight_decay=cfg["weight_decay"])


def main(cfg):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"] + 1)
    d = cfg["data"]
    train = molecules(d["train"], d["atoms"], d["kinds"], gen)
    test = molecules(d["test"], d["atoms"], d["kinds"], gen)
    model = SetModel(d["kinds"], cfg["model"]["dim"])
    optimizer = build_optimizer(model, cfg["optim"])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg["epochs"])
    huber = nn.SmoothL1Loss()
    for epoch in range(cfg["epochs"]):
        model.train()
        for idx in torch.randperm(d["train"]).split(cfg["batch"]):
            kind, charge, present, target = (t[idx] for t in train)
            loss = huber(model(kind, charge, present), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            mae = (model(*test[:3]) - test[3]).abs().mean().item()
        rates = {g["name"]: round(g["lr"], 5) for g in optimizer.param_groups}
        print(f"epoch {epoch} loss {loss.item():.4f} mae {mae:.4f} {rates}")


if __name__ == "__main__":
    main(CFG)
