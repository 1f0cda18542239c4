import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from losses import LOSSES


def make_identities(n_ids, per_id, gen, dim=40):
    centers = torch.randn(n_ids, 8, generator=gen)
    mix = torch.randn(8, dim, generator=torch.Generator().manual_seed(99))
    z = centers.repeat_interleave(per_id, 0) + 0.5 * torch.randn(n_ids * per_id, 8, generator=gen)
    x = torch.tanh(z @ mix) + 0.3 * torch.randn(n_ids * per_id, dim, generator=gen)
    return x, torch.arange(n_ids).repeat_interleave(per_id)


class Embedder(nn.Module):
    def __init__(self, d_in=40, d_out=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d_in, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, d_out))

    def forward(self, x):
        return self.body(x)


@torch.no_grad()
def recall_at_1(net, x, ids):
    net.eval()
    e = F.normalize(net(x))
    sim = e @ e.t()
    sim.fill_diagonal_(-2)
    return (ids[sim.argmax(1)] == ids).float().mean().item()


def parse():
    ap = argparse.ArgumentParser(description="identity embeddings")
    ap.add_argument("--loss", choices=sorted(LOSSES), default="proxy-anchor")
    ap.add_argument("--dim", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--seed", type=int, default=13)
    return ap.parse_args()


def build(args, n_ids):
    net = Embedder(d_out=args.dim)
    crit = LOSSES[args.loss](n_ids, args.dim) if args.loss.startswith("proxy") else LOSSES[args.loss]()
    groups = [{"params": net.body[0].parameters()},
              {"params": net.body[1].parameters(), "weight_decay": 0.0},
              {"params": net.body[3].parameters(), "lr": args.lr * 2}]
    opt = torch.optim.AdamW(groups, lr=args.lr, weight_decay=1e-4)
    return net, crit, opt


def main():
    args = parse()
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    x_tr, id_tr = make_identities(24, 20, gen)
    x_te, id_te = make_identities(16, 10, gen)          # unseen identities
    loader = DataLoader(TensorDataset(x_tr, id_tr), 48, shuffle=True, drop_last=True)

    net, crit, opt = build(args, 24)
    print(f"recall@1 before: {recall_at_1(net, x_te, id_te):.3f}")
    for ep in range(args.epochs):
        net.train()
        tot = 0.0
        for x, ids in loader:
            opt.zero_grad(set_to_none=True)
            crit.zero_grad(set_to_none=True)
            loss = crit(net(x), ids)
            loss.backward()
            opt.step()
            tot += loss.item()
        print(f"ep {ep} loss {tot / len(loader):.3f} recall@1 {recall_at_1(net, x_te, id_te):.3f}")


if __name__ == "__main__":
    main()
