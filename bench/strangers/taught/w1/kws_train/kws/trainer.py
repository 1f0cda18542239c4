import logging

import torch
import torch.nn.functional as F

log = logging.getLogger(__name__)


class KWSTrainer:
    def __init__(self, net, train_dl, dev_dl, cfg):
        self.net, self.train_dl, self.dev_dl, self.cfg = net, train_dl, dev_dl, cfg
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net.to(self.device)
        self.opt = torch.optim.Adam(net.parameters(), lr=cfg["lr"], weight_decay=cfg.get("wd", 0.0))
        self.sched = torch.optim.lr_scheduler.ExponentialLR(self.opt, gamma=cfg["lr_decay_per_epoch"])
        self.epoch = 0
        self.best = 0.0

    def step(self, feats, labels):
        self.net.train()
        feats, labels = feats.to(self.device), labels.to(self.device)
        loss = F.cross_entropy(self.net(feats), labels)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.sched.step()
        return loss.item()

    def run(self):
        while self.epoch < self.cfg["epochs"]:
            losses = [self.step(*b) for b in self.train_dl]
            acc = self.dev_accuracy()
            log.info("epoch %d loss %.4f dev acc %.4f lr %.2e", self.epoch, sum(losses) / len(losses), acc,
                     self.opt.param_groups[0]["lr"])
            if acc > self.best:
                self.best = acc
                self.save(self.cfg["ckpt"])
            self.epoch += 1

    @torch.no_grad()
    def dev_accuracy(self):
        self.net.eval()
        ok = n = 0
        for feats, labels in self.dev_dl:
            pred = self.net(feats.to(self.device)).argmax(1).cpu()
            ok += (pred == labels).sum().item()
            n += len(labels)
        return ok / n

    def save(self, path):
        torch.save({"net": self.net.state_dict(), "opt": self.opt.state_dict(),
                    "sched": self.sched.state_dict(), "epoch": self.epoch}, path)
