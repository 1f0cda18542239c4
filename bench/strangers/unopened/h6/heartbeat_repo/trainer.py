import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from callbacks import KeepBest, LossPrinter


class EcgTrainer:
    def __init__(self, net, train_loader, val_loader, lr, out, n_classes):
        self.rank = dist.get_rank()
        self.net = DDP(net)
        self.train_loader, self.val_loader = train_loader, val_loader
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)
        self.n_classes = n_classes
        self.callbacks = [LossPrinter()]
        if self.rank == 0:
            self.callbacks.append(KeepBest(out))

    def fit(self, epochs):
        for self.epoch in range(epochs):
            self.train_loader.sampler.set_epoch(self.epoch)
            self.net.train()
            losses = []
            for wave, rhythm in self.train_loader:
                loss = F.cross_entropy(self.net(wave), rhythm)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                losses.append(loss.item())
            self.train_loss = sum(losses) / len(losses)
            for cb in self.callbacks:
                cb.on_epoch_end(self)

    @torch.no_grad()
    def evaluate(self):
        self.net.eval()
        hits, counts = torch.zeros(self.n_classes), torch.zeros(self.n_classes)
        for wave, rhythm in self.val_loader:
            ok = (self.net.module(wave).argmax(1) == rhythm).float()
            hits.index_add_(0, rhythm, ok)
            counts.index_add_(0, rhythm, torch.ones_like(ok))
        both = torch.stack([hits, counts])
        dist.all_reduce(both)
        return (both[0] / both[1].clamp(min=1)).mean().item()
