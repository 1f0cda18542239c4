import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from ema import ShadowModel
from gestures import GestureNet, record


class Runner:
    def __init__(self, opts):
        self.opts = opts
        self.model = GestureNet()
        self.shadow = ShadowModel(self.model, opts.decay)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=opts.lr)
        self.loss_fn = nn.CrossEntropyLoss()
        self.train_dl = DataLoader(TensorDataset(*record(640, 0)), batch_size=opts.bs, shuffle=True)
        self.val_dl = DataLoader(TensorDataset(*record(400, 1)), batch_size=8)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_dl:
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss_fn(self.model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            self.shadow.update(self.model)
            total += loss.item()
        return total / len(self.train_dl)

    @torch.inference_mode()
    def validate(self):
        self.model.eval()
        net = self.shadow.module
        correct, loss_sum, n = 0, 0.0, 0
        for x, y in self.val_dl:
            out = net(x)
            loss_sum += self.loss_fn(out, y).item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
            n += len(y)
        return loss_sum / n, correct / n

    def run(self):
        for ep in range(self.opts.epochs):
            tl = self.train_epoch()
            vl, va = self.validate()
            print(f"epoch={ep} train_loss={tl:.3f} val_loss={vl:.3f} val_acc={va:.3f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--bs", type=int, default=32)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--decay", type=float, default=0.95)
    torch.manual_seed(0)
    Runner(ap.parse_args()).run()
