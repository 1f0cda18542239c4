"""Gated message passing on a stochastic block model graph (node classification)."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def sbm_graph(n_nodes=240, n_blocks=4, p_in=0.10, p_out=0.01, feat=16, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, n_blocks, n_nodes)
    prob = np.where(label[:, None] == label[None, :], p_in, p_out)
    adj = np.triu(rng.random((n_nodes, n_nodes)) < prob, 1)
    src, dst = np.nonzero(adj | adj.T)
    x = rng.normal(size=(n_nodes, feat)) + 0.4 * np.eye(n_blocks, feat)[label]
    return (torch.tensor(x, dtype=torch.float32),
            torch.tensor(np.stack([src, dst]), dtype=torch.long),
            torch.tensor(label, dtype=torch.long))


class GatedLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.msg = nn.Linear(dim, dim, bias=False)
        self.gate = nn.Linear(2 * dim, dim)
        self.skip = nn.Linear(dim, dim)

    def forward(self, h, edge_index, inv_deg):
        src, dst = edge_index
        passed = self.skip(h)
        g = torch.sigmoid(self.gate(torch.cat([h[src], h[dst]], dim=-1)))
        m = g * self.msg(h[src]) * inv_deg[dst]
        h.index_add_(0, dst, m)
        return F.elu(h + passed)


class GatedGNN(nn.Module):
    def __init__(self, d_in, d_hid, n_out, depth):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d_in, d_hid), nn.LayerNorm(d_hid))
        self.layers = nn.ModuleList(GatedLayer(d_hid) for _ in range(depth))
        self.readout = nn.Linear(d_hid, n_out)

    def forward(self, x, edge_index):
        deg = torch.bincount(edge_index[1], minlength=x.size(0)).clamp(min=1)
        inv_deg = (1.0 / deg.float()).unsqueeze(-1)
        h = self.enc(x)
        for layer in self.layers:
            h = layer(h, edge_index, inv_deg)
        return self.readout(h)


def accuracy(logits, y, idx):
    return (logits[idx].argmax(-1) == y[idx]).float().mean().item()


def run(args):
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, edge_index, y = (t.to(device) for t in sbm_graph(seed=args.seed))
    perm = torch.randperm(len(y), device=device)
    train_idx, val_idx = perm[:80], perm[80:]
    model = GatedGNN(x.size(1), args.hidden, int(y.max()) + 1, args.depth).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)

    with torch.no_grad():
        print("before training:", round(accuracy(model(x, edge_index), y, val_idx), 3))

    for step in range(1, args.steps + 1):
        model.train()
        optimizer.zero_grad(set_to_none=True)
        logits = model(x, edge_index)
        loss = F.cross_entropy(logits[train_idx], y[train_idx])
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            model.eval()
            with torch.no_grad():
                acc = accuracy(model(x, edge_index), y, val_idx)
            print(f"step {step:4d}  loss {loss.item():.3f}  val acc {acc:.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--depth", type=int, default=2)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--seed", type=int, default=3)
    run(p.parse_args())
