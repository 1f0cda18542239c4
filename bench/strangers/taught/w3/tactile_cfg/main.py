import sys
from pathlib import Path

import torch
import yaml
from torch import nn

from loaders import build


class TactileCNN(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.f = nn.Sequential(nn.Conv1d(8, 32, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2),
                               nn.Conv1d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.c = nn.Linear(32 * 8, n_classes)

    def forward(self, x):
        return self.c(self.f(x))


def main(path):
    cfg = yaml.safe_load(Path(path).read_text())
    torch.manual_seed(cfg["seed"])
    train, val = build(cfg)
    model = TactileCNN(cfg["data"]["classes"])
    o = cfg["optim"]
    opt = torch.optim.SGD(model.parameters(), lr=o["lr"], momentum=o["momentum"])
    ce = nn.CrossEntropyLoss()
    for epoch in range(o["epochs"]):
        model.train()
        s = 0.0
        for x, y in train:
            opt.zero_grad()
            loss = ce(model(x), y)
            loss.backward()
            opt.step()
            s += loss.item()
        model.eval()
        ok = 0
        with torch.no_grad():
            for x, y in val:
                ok += (model(x).argmax(1) == y).sum().item()
        print(f"{cfg['experiment']} epoch {epoch} loss {s / len(train):.3f} val acc {ok / len(val.dataset):.3f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("config.yaml"))
