#!/usr/bin/env python
# 1-D CNN heartbeat classifier (4 classes, strongly imbalanced)
import argparse
import csv
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from beats import CLASSES, BeatDataset


class ConvBlock(nn.Module):
    def __init__(self, c_in, c_out, k):
        super().__init__()
        self.conv = nn.Conv1d(c_in, c_out, k, padding=k // 2, bias=False)
        self.bn = nn.BatchNorm1d(c_out)

    def forward(self, x):
        return F.max_pool1d(F.relu(self.bn(self.conv(x))), 2)


class BeatNet(nn.Module):
    def __init__(self, n_classes, width=8):
        super().__init__()
        self.b1 = ConvBlock(1, width, 7)
        self.b2 = ConvBlock(width, 2 * width, 5)
        self.b3 = ConvBlock(2 * width, 3 * width, 5)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(3 * width * 4, n_classes)

    def forward(self, x):
        x = self.b3(self.b2(self.b1(x)))
        x = F.adaptive_avg_pool1d(x, 4).flatten(1)
        return self.fc(self.drop(x))


def confusion_matrix(truth, pred):
    cm = np.zeros((len(CLASSES), len(CLASSES)), dtype=int)
    np.add.at(cm, (truth, pred), 1)
    return cm


def macro_f1(cm):
    tp = np.diag(cm)
    return float(np.mean(2 * tp / np.maximum(cm.sum(0) + cm.sum(1), 1)))


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, -np.inf, 0

    def update(self, score):
        """True if this is a new best."""
        if score > self.best + 1e-4:
            self.best, self.bad = score, 0
            return True
        self.bad += 1
        return False

    @property
    def stop(self):
        return self.bad >= self.patience


class Runner:
    def __init__(self, args):
        self.args = args
        self.train_ds = BeatDataset(1280, seed=100)
        self.val_dl = DataLoader(BeatDataset(500, seed=101), batch_size=250)
        self.test_dl = DataLoader(BeatDataset(600, seed=102), batch_size=300)
        self.train_dl = DataLoader(self.train_ds, batch_size=args.batch_size, shuffle=True)
        self.net = BeatNet(len(CLASSES), args.width)
        self.loss_fn = nn.CrossEntropyLoss(weight=self.train_ds.class_weights())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=args.lr, weight_decay=1e-4)
        self.sched = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.opt, mode="max", factor=0.4, patience=1)
        self.stopper = EarlyStopping(args.patience)

    def train_epoch(self):
        self.net.train()
        losses = []
        for x, y in self.train_dl:
            self.opt.zero_grad()
            loss = self.loss_fn(self.net(x), y)
            loss.backward()
            self.opt.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def evaluate(self, dl):
        self.net.eval()
        loss, preds, ys = 0.0, [], []
        for x, y in dl:
            logits = self.net(x)
            loss += self.loss_fn(logits, y).item()
            preds.append(logits.argmax(1))
            ys.append(y)
        preds, ys = torch.cat(preds).numpy(), torch.cat(ys).numpy()
        f1 = macro_f1(confusion_matrix(ys, preds))
        return loss / len(dl), f1, preds, ys

    def fit(self):
        with open(self.args.log, "w", newline="") as fh:
            writer = csv.writer(fh)
            writer.writerow(["epoch", "train_loss", "val_loss", "val_macro_f1", "lr"])
            for epoch in range(self.args.epochs):
                t0 = time.time()
                train_loss = self.train_epoch()
                val_loss, f1, _, _ = self.evaluate(self.val_dl)
                lr = self.opt.param_groups[0]["lr"]
                self.sched.step(f1)
                writer.writerow([epoch, f"{train_loss:.5f}", f"{val_loss:.5f}", f"{f1:.4f}", lr])
                fh.flush()
                flag = ""
                if self.stopper.update(f1):
                    torch.save({"epoch": epoch, "model": self.net.state_dict(),
                                "optimizer": self.opt.state_dict(), "f1": f1}, self.args.ckpt)
                    flag = " *"
                print(f"[{epoch:02d}] train loss {train_loss:.4f} | val loss {val_loss:.4f} | "
                      f"val macro-F1 {f1:.4f} | {time.time() - t0:.1f}s{flag}")
                if self.stopper.stop:
                    print(f"no improvement for {self.args.patience} epochs, stopping")
                    break

    def test(self):
        best = torch.load(self.args.ckpt, weights_only=False)
        self.net.load_state_dict(best["model"])
        _, f1, preds, ys = self.evaluate(self.test_dl)
        print("confusion matrix (rows = truth)", CLASSES)
        print(confusion_matrix(ys, preds))
        print(f"test macro-F1: {f1:.4f}  accuracy: {(preds == ys).mean():.4f}")


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--width", type=int, default=8)
    p.add_argument("--patience", type=int, default=4)
    p.add_argument("--log", default="log.csv")
    p.add_argument("--ckpt", default="best.pt")
    p.add_argument("--seed", type=int, default=int(os.environ.get("SEED", 0)))
    return p.parse_args()


if __name__ == "__main__":
    args = parse_args()
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    runner = Runner(args)
    runner.fit()
    runner.test()
