import torch
from torch import nn


class Learner:
    def __init__(self, net, loaders, lr, callbacks=()):
        self.net, self.callbacks = net, list(callbacks)
        self.train_dl, self.val_dl = loaders
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)
        self.crit = nn.MSELoss()
        self.stop, self.epoch = False, 0

    def notify(self, event, *args):
        for cb in self.callbacks:
            getattr(cb, event)(self, *args)

    def one_pass(self, loader, fit):
        self.net.train(fit)
        s = n = 0
        with torch.set_grad_enabled(fit):
            for x, y in loader:
                loss = self.crit(self.net(x), y)
                if fit:
                    self.opt.zero_grad()
                    loss.backward()
                    self.opt.step()
                s, n = s + loss.item() * len(y), n + len(y)
        return s / n

    def fit(self, epochs):
        self.notify("begin")
        for self.epoch in range(epochs):
            metrics = {"train_mse": self.one_pass(self.train_dl, True), "val_mse": self.one_pass(self.val_dl, False)}
            self.notify("after_epoch", metrics)
            if self.stop:
                break
        self.notify("end")
