import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

from data import get_loader
from mixer import DigitMixer


def fit_one_epoch(net, opt, sched, loader):
    net.train()
    for img, lab in loader:
        opt.zero_grad()
        F.cross_entropy(net(img), lab, label_smoothing=0.05).backward()
        opt.step()
        sched.step()


@torch.inference_mode()
def score(net, loader):
    net.eval()
    hit = n = 0
    for img, lab in loader:
        hit += (net(img).argmax(-1) == lab).sum().item()
        n += lab.numel()
    return hit / n


def main(cfg):
    torch.manual_seed(cfg["seed"])
    train_loader = get_loader(batch_size=cfg["bs"], shuffle=True, drop_last=True)
    eval_loader = get_loader(batch_size=cfg["bs"] * 4, shuffle=False)
    net = DigitMixer(cfg["dim"], cfg["depth"])
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["lr"])
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, cfg["lr"], total_steps=cfg["epochs"] * len(train_loader))
    best = 0.0
    for ep in range(cfg["epochs"]):
        fit_one_epoch(net, opt, sched, train_loader)
        acc = score(net, eval_loader)
        best = max(best, acc)
        print(json.dumps({"epoch": ep, "heldout_acc": round(acc, 4)}))
    print(f"best held-out accuracy: {best:.2%}")


if __name__ == "__main__":
    cfg = {"seed": 0, "bs": 64, "dim": 32, "depth": 2, "lr": 4e-3, "epochs": 6}
    if len(sys.argv) > 1:
        cfg.update(json.loads(Path(sys.argv[1]).read_text()))
    main(cfg)
