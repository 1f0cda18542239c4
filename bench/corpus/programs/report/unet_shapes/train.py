"""Train a small U-Net on synthetic shapes.

    python train.py [--config config.yaml]
"""
import argparse
import json
import os
import random
from pathlib import Path

import numpy as np
import torch
import yaml
from torch.utils.data import DataLoader

from dataset import ShapesDataset
from losses import DiceBCELoss, iou_per_image
from unet import UNet


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Trainer:
    def __init__(self, cfg, seed):
        self.cfg = cfg
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        d, t, o = cfg["data"], cfg["train"], cfg["optim"]
        common = dict(image_size=d["image_size"], max_shapes=d["max_shapes"], noise_std=d["noise_std"])
        train_set = ShapesDataset(d["n_train"], seed=1000 + seed, augment=True, **common)
        val_set = ShapesDataset(d["n_val"], seed=77, **common)
        self.train_loader = DataLoader(train_set, batch_size=t["batch_size"], shuffle=True, drop_last=True)
        self.val_loader = DataLoader(val_set, batch_size=2 * t["batch_size"])

        self.model = UNet(**cfg["model"]).to(self.device)
        self.criterion = DiceBCELoss(t["bce_weight"], t["dice_weight"])
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=o["lr"], weight_decay=o["weight_decay"]
        )
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=o["lr"], total_steps=t["epochs"] * len(self.train_loader), pct_start=0.2
        )
        self.best_iou = 0.0
        self.history = []

    def train_epoch(self):
        self.model.train()
        running = 0.0
        for batch in self.train_loader:
            images = batch["image"].to(self.device)
            masks = batch["mask"].to(self.device)

            self.optimizer.zero_grad(set_to_none=True)
            loss = self.criterion(self.model(images), masks)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg["optim"]["grad_clip"])
            self.optimizer.step()
            self.scheduler.step()

            running += loss.item()
        return running / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        loss_sum, n, ious = 0.0, 0, []
        for batch in self.val_loader:
            images = batch["image"].to(self.device)
            masks = batch["mask"].to(self.device)
            logits = self.model(images)
            loss_sum += self.criterion(logits, masks).item() * images.size(0)
            n += images.size(0)
            ious.append(iou_per_image(logits, masks, self.cfg["train"]["threshold"]))
        return loss_sum / n, torch.cat(ious).mean().item()

    def save_checkpoint(self, epoch, iou):
        torch.save(
            {
                "epoch": epoch,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "iou": iou,
            },
            self.cfg["output"]["checkpoint"],
        )

    def fit(self):
        epochs = self.cfg["train"]["epochs"]
        for epoch in range(1, epochs + 1):
            train_loss = self.train_epoch()
            val_loss, val_iou = self.validate()
            lr = self.optimizer.param_groups[0]["lr"]
            print(
                f"[{epoch:02d}/{epochs:02d}] train_loss={train_loss:.4f} "
                f"val_loss={val_loss:.4f} val_iou={val_iou:.4f} lr={lr:.2e}",
                flush=True,
            )
            self.history.append(
                dict(epoch=epoch, train_loss=train_loss, val_loss=val_loss, val_iou=val_iou)
            )
            if val_iou > self.best_iou:
                self.best_iou = val_iou
                self.save_checkpoint(epoch, val_iou)

        Path(self.cfg["output"]["history"]).write_text(json.dumps(self.history, indent=2))
        return self.history[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default=str(Path(__file__).with_name("config.yaml")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "0")))
    args = parser.parse_args()

    with open(args.config) as f:
        cfg = yaml.safe_load(f)
    set_seed(args.seed)

    trainer = Trainer(cfg, args.seed)
    n_params = sum(p.numel() for p in trainer.model.parameters())
    print(f"{cfg['experiment']}: {n_params / 1e3:.1f}k parameters, seed {args.seed}")
    last = trainer.fit()
    print(f"done. final IoU: {last['val_iou']:.4f} (best {trainer.best_iou:.4f})")


if __name__ == "__main__":
    main()
