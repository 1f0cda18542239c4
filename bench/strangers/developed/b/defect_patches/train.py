import pathlib

import torch
import yaml
from torch import nn

from data import build_loaders


def net():
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveMaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 2),
    )


def main():
    cfg = yaml.safe_load((pathlib.Path(__file__).parent / "config.yaml").read_text())
    torch.manual_seed(cfg["seed"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, val = build_loaders(cfg)
    model = net().to(device)
    opt = torch.optim.Adam(model.parameters(), cfg["lr"])
    for epoch in range(cfg["epochs"]):
        model.train()
        for img, lab in train:
            loss = nn.functional.cross_entropy(model(img.to(device)), lab.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        good = 0
        with torch.no_grad():
            for img, lab in val:
                good += (model(img.to(device)).argmax(1).cpu() == lab).sum().item()
        print(f"epoch {epoch} val accuracy {good / len(val.dataset):.3f}")


if __name__ == "__main__":
    main()
