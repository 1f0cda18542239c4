import csv
import math
import os
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.nn as nn
import yaml
from torch.utils.data import DataLoader

from shapes import CLASSES, make_split
from vit import ViT


def param_groups(model, weight_decay):
    """No decay on biases, norms, and the class / position tokens."""
    decay, no_decay = [], []
    for name, p in model.named_parameters():
        if p.ndim <= 1 or name in ("cls_token", "pos_embed"):
            no_decay.append(p)
        else:
            decay.append(p)
    return [{"params": decay, "weight_decay": weight_decay},
            {"params": no_decay, "weight_decay": 0.0}]


def warmup_cosine(warmup, total):
    def f(step):
        if step < warmup:
            return (step + 1) / warmup
        t = (step - warmup) / max(1, total - warmup)
        return 0.5 * (1 + math.cos(math.pi * t))
    return f


def run_eval(model, loader, amp):
    model.eval()
    hits = n = 0
    loss = 0.0
    with torch.no_grad(), amp():
        for img, lab in loader:
            out = model(img).float()
            loss += nn.functional.cross_entropy(out, lab, reduction="sum").item()
            hits += (out.argmax(-1) == lab).sum().item()
            n += len(lab)
    return loss / n, hits / n


def main():
    cfg = yaml.safe_load((Path(__file__).parent / "config.yaml").read_text())
    d, m, o, t = cfg["data"], cfg["model"], cfg["optim"], cfg["train"]
    torch.manual_seed(int(os.environ.get("SEED", "0")))

    # images are the same for every seed
    train_ds = make_split(d["n_train"], d["image_size"], d["noise"], seed=11)
    val_ds = make_split(d["n_val"], d["image_size"], d["noise"], seed=12)
    train_dl = DataLoader(train_ds, batch_size=t["batch_size"], shuffle=True)
    val_dl = DataLoader(val_ds, batch_size=128)

    model = ViT(d["image_size"], len(CLASSES), **m)
    print(f"ViT with {sum(p.numel() for p in model.parameters()):,} parameters")
    optimizer = torch.optim.AdamW(param_groups(model, o["weight_decay"]), lr=o["lr"], betas=tuple(o["betas"]))
    total_steps = t["epochs"] * len(train_dl)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup_cosine(o["warmup_steps"], total_steps))
    criterion = nn.CrossEntropyLoss(label_smoothing=o["label_smoothing"])

    def amp():
        return torch.autocast("cpu", dtype=torch.bfloat16) if t["amp"] else nullcontext()

    with open("log.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["epoch", "lr", "train_loss", "val_loss", "val_acc"])
        for epoch in range(t["epochs"]):
            model.train()
            loss_sum = 0.0
            for img, lab in train_dl:
                with amp():
                    logits = model(img)
                    loss = criterion(logits, lab)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), o["grad_clip"])
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                scheduler.step()
                loss_sum += loss.item()

            train_loss = loss_sum / len(train_dl)
            val_loss, val_acc = run_eval(model, val_dl, amp)
            lr = optimizer.param_groups[0]["lr"]
            writer.writerow([epoch, lr, train_loss, val_loss, val_acc])
            print(f"[{epoch + 1}/{t['epochs']}] lr={lr:.2e} train_loss={train_loss:.4f} "
                  f"val_loss={val_loss:.4f} val_acc={val_acc:.4f}", flush=True)

    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(), "epoch": t["epochs"], "config": cfg}, "vit_last.pt")
    print(f"done, final val_acc={val_acc:.4f}")


if __name__ == "__main__":
    main()
