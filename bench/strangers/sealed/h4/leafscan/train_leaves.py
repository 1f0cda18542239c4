import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from leaves import Leaves
from model import LeafNet
from settings import Settings


def evaluate(net, loader):
    net.eval()
    ok = n = 0
    with torch.no_grad():
        for img, sp in loader:
            ok += (net(img).argmax(1) == sp).sum().item()
            n += len(sp)
    return ok / n


def main(cfg: Settings):
    torch.manual_seed(cfg.seed)
    train = DataLoader(Leaves(cfg.leaves, cfg.size, cfg.species, 1), batch_size=cfg.loader_batch,
                       shuffle=True, drop_last=True)
    valid = DataLoader(Leaves(300, cfg.size, cfg.species, 2), batch_size=100)
    net = LeafNet(cfg.species)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr)

    for epoch in range(cfg.epochs):
        net.train()
        opt.zero_grad()
        shown = 0.0
        for i, (img, sp) in enumerate(train, start=1):
            loss = F.cross_entropy(net(img), sp)
            (loss / cfg.accumulate).backward()
            shown += loss.item()
            if i % cfg.accumulate == 0:
                opt.step()
                opt.zero_grad()
        print(f"epoch {epoch} loss {shown / len(train):.3f} valid acc {evaluate(net, valid):.3f}")


if __name__ == "__main__":
    main(Settings())
