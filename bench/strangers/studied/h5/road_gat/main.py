import argparse

import torch
import torch.nn.functional as F

from gat import RoadNet
from roads import road_network


def main(args):
    torch.manual_seed(args.seed)
    x, adj, y = road_network()
    order = torch.randperm(len(y))
    train, test = order[:120], order[120:]
    print(f"{len(y)} junctions, {int(adj.sum()) // 2} roads, mean degree {adj.sum(1).mean():.1f}")
    net = RoadNet(x.shape[1], args.hidden, int(y.max()) + 1)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr, weight_decay=5e-4)
    for epoch in range(args.epochs):
        net.train()
        loss = F.cross_entropy(net(x, adj)[train], y[train])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 10 == 9:
            net.eval()
            with torch.no_grad():
                acc = (net(x, adj)[test].argmax(1) == y[test]).float().mean()
            print(f"epoch {epoch + 1:3d} loss {loss.item():.4f} test acc {acc.item():.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=60)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--seed", type=int, default=0)
    main(p.parse_args())
