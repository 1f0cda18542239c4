import json

import torch
import torch.nn.functional as F
import yaml
from torch.utils.data import DataLoader

from net import UNet3D
from volumes import RandomPatches, WholeVolumes


def dice_ce(logits, target):
    ce = F.cross_entropy(logits, target)
    p = logits.softmax(1)
    t = F.one_hot(target, logits.size(1)).permute(0, 4, 1, 2, 3).float()
    inter = (p * t).sum((2, 3, 4))
    dice = (2 * inter + 1e-5) / (p.sum((2, 3, 4)) + t.sum((2, 3, 4)) + 1e-5)
    return ce + 1 - dice[:, 1:].mean()


@torch.no_grad()
def validate(model, loader, classes, device):
    model.eval()
    probs, segs = [], []
    for ct, seg in loader:
        ct = ct.to(device)
        # flip averaging along the three axes
        p = model(ct).softmax(1)
        for ax in (2, 3, 4):
            p = p + model(ct.flip(ax)).flip(ax).softmax(1)
        probs.append(p / 4)
        segs.append(seg.to(device))

    scores = []
    for c in range(1, classes):
        inter = total = 0.0
        for p, s in zip(probs, segs):
            hit = p.argmax(1) == c
            ref = s == c
            inter += (hit & ref).sum().item()
            total += hit.sum().item() + ref.sum().item()
        scores.append(2 * inter / max(total, 1))
    return scores


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    torch.manual_seed(cfg["seed"])
    device = torch.device("cuda:0")
    split = json.load(open("split.json"))
    train = DataLoader(RandomPatches(split["train"], cfg["data_root"], cfg["patch"]), cfg["batch_size"],
                       shuffle=True, num_workers=6, pin_memory=True)
    val = DataLoader(WholeVolumes(split["val"], cfg["data_root"]), 1, num_workers=2)

    model = UNet3D(cfg["num_classes"], cfg["base_channels"]).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=1e-5)
    sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=cfg["epochs"], power=0.9)

    best = 0.0
    for epoch in range(cfg["epochs"]):
        model.train()
        running = torch.zeros((), device=device)
        for ct, seg in train:
            ct, seg = ct.to(device, non_blocking=True), seg.to(device, non_blocking=True)
            loss = dice_ce(model(ct), seg)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 12.0)
            opt.step()
            running += loss.detach()
        sched.step()
        print(f"epoch {epoch}: loss {running.item() / len(train):.4f}")

        if (epoch + 1) % cfg["eval_every"] == 0:
            scores = validate(model, val, cfg["num_classes"], device)
            print("   dice per organ", [f"{s:.3f}" for s in scores])
            if sum(scores) > best:
                best = sum(scores)
                torch.save(model.state_dict(), "best.pt")


if __name__ == "__main__":
    main()
