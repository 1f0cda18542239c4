"""Klassifikation von Gasen aus Sensorwerten.   python train.py [conf/xyz.yaml]"""
import sys
from pathlib import Path

import torch
import yaml
from torch import nn

from gasnet.bausteine import baue_daten, baue_netz, baue_optimierer

HIER = Path(__file__).parent


def genauigkeit(netz, lader):
    netz.eval()
    treffer = gesamt = 0
    with torch.no_grad():
        for x, y in lader:
            treffer += (netz(x).argmax(1) == y).sum().item()
            gesamt += len(y)
    return treffer / gesamt


def main(pfad):
    cfg = yaml.safe_load(Path(pfad).read_text(encoding="utf8"))
    torch.manual_seed(cfg["seed"])
    training, test = baue_daten(cfg["batch_size"], cfg["seed"])
    netz = baue_netz(16, 6, cfg["model"])
    opt = baue_optimierer(netz.parameters(), cfg["optimizer"])
    verlust = nn.CrossEntropyLoss()

    for epoche in range(cfg["epochs"]):
        netz.train()
        summe = 0.0
        for x, y in training:
            opt.zero_grad()
            v = verlust(netz(x), y)
            v.backward()
            opt.step()
            summe += v.item() * len(y)
        if epoche % 3 == 2:
            print(f"Epoche {epoche + 1}: Verlust {summe / len(training.dataset):.3f}, "
                  f"Testgenauigkeit {genauigkeit(netz, test):.3f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else HIER / "conf" / "default.yaml")
