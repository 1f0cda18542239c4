import torch
import torch.nn.functional as F

from distributed import mean_over_ranks


def on_epoch_start(loaders, epoch):
    """Tell everything that keeps an epoch counter which epoch begins."""
    for loader in loaders:
        if hasattr(loader, "set_epoch"):
            loader.set_epoch(epoch)


def train_epoch(net, opt, loader, device):
    net.train()
    total = seen = 0
    for seq, fold in loader:
        seq, fold = seq.to(device), fold.to(device)
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(seq), fold)
        loss.backward()
        opt.step()
        total += loss.item() * len(fold)
        seen += len(fold)
    return mean_over_ranks(total / seen, seen)


@torch.no_grad()
def evaluate(net, loader, device):
    net.eval()
    ok = seen = 0
    for seq, fold in loader:
        ok += (net(seq.to(device)).argmax(1).cpu() == fold).sum().item()
        seen += len(fold)
    return mean_over_ranks(ok / seen, seen)
