import argparse

import torch
import torch.nn.functional as F

from data import make_graph
from model import GCN, RelationMixer


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--lr", type=float, default=1e-2)
    p.add_argument("--wd", type=float, default=5e-4)
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


@torch.no_grad()
def accuracy(model, mixer, x, adjs, y, idx):
    model.eval()
    pred = model(x, mixer(adjs)).argmax(dim=1)
    return (pred[idx] == y[idx]).float().mean().item()


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    x, adjs, y, tr, va, te = make_graph(seed=args.seed)

    mixer = RelationMixer(adjs.size(0))
    model = GCN(x.size(1), args.hidden, int(y.max()) + 1)
    opt = torch.optim.Adam(
        [{"params": model.parameters(), "weight_decay": args.wd},
         {"params": mixer.parameters(), "lr": 5 * args.lr}],
        lr=args.lr,
    )

    # the full graph is the batch, the merged adjacency is n x n
    adj = mixer(adjs)

    best_va, best_te = 0.0, 0.0
    for epoch in range(args.epochs):
        model.train()
        opt.zero_grad()
        out = model(x, adj)
        loss = F.cross_entropy(out[tr], y[tr])
        loss.backward()
        opt.step()

        va_acc = accuracy(model, mixer, x, adjs, y, va)
        if va_acc > best_va:
            best_va, best_te = va_acc, accuracy(model, mixer, x, adjs, y, te)
        if epoch % 10 == 0:
            print(f"{epoch:03d} loss {loss.item():.4f} val {va_acc:.3f}")
    print("relation weights", torch.softmax(mixer.logits, 0).tolist())
    print(f"best val {best_va:.3f} test {best_te:.3f}")


if __name__ == "__main__":
    main()
