import math

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from checkpoint import Checkpointer


def warmup_cosine(warm, total):
    def f(step):
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / (total - warm))))
    return f


class Trainer:
    def __init__(self, net, cfg):
        self.net, self.cfg = net, cfg
        self.opt = torch.optim.AdamW(net.parameters(), lr=cfg["lr"])
        self.ckpt = Checkpointer(cfg["ckpt"]).track(net=self.net, opt=self.opt)
        self.epoch, self.best = 0, float("inf")

    def prepare_schedule(self, steps_per_epoch):
        total = steps_per_epoch * self.cfg["epochs"]
        self.sched = LambdaLR(self.opt, warmup_cosine(int(0.1 * total), total))

    def fit(self, train, valid):
        self.prepare_schedule(len(train))
        counters = self.ckpt.restore()
        self.epoch, self.best = counters.get("epoch", 0), counters.get("best", float("inf"))
        while self.epoch < self.cfg["epochs"]:
            # the order of an epoch depends only on its number
            train.generator.manual_seed(self.cfg["seed"] + self.epoch)
            torch.manual_seed(self.cfg["seed"] * 1000 + self.epoch)
            loss = self.train_epoch(train)
            err = self.validate(valid)
            self.best = min(self.best, err)
            self.epoch += 1
            self.ckpt.save(epoch=self.epoch, best=self.best)
            print(f"epoch {self.epoch}: train {loss:.4f} valid {err:.4f} lr {self.opt.param_groups[0]['lr']:.2e}")
            if self.epoch == self.cfg.get("stop_after"):
                break

    def train_epoch(self, loader):
        self.net.train()
        acc = 0.0
        for x, y in loader:
            self.opt.zero_grad()
            loss = nn.functional.mse_loss(self.net(x), y)
            loss.backward()
            self.opt.step()
            self.sched.step()
            acc += loss.item()
        return acc / len(loader)

    @torch.no_grad()
    def validate(self, loader):
        self.net.eval()
        se = n = 0
        for x, y in loader:
            se += (self.net(x) - y).square().sum().item()
            n += y.numel()
        return se / n
