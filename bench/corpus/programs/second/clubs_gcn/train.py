"""
Semi-supervised node classification with a two layer GCN (Kipf & Welling, 2017).

The graph is a planted partition / stochastic block model: students belong to
one of six clubs, mostly know people of their own club, and carry a noisy
bag-of-interests vector. Only a few nodes per club are labelled.
"""
import argparse
import math
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=int(os.environ.get("SEED", 0)))
    p.add_argument("--epochs", type=int, default=200)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--weight-decay", type=float, default=5e-4)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--dropout", type=float, default=0.5)
    p.add_argument("--nodes", type=int, default=720)
    p.add_argument("--clubs", type=int, default=6)
    p.add_argument("--p-in", type=float, default=0.06)
    p.add_argument("--p-out", type=float, default=0.006)
    p.add_argument("--labelled-per-club", type=int, default=20)
    return p.parse_args()


def sample_sbm(n, k, p_in, p_out, rng):
    """Symmetric adjacency without self loops, and the block of each node."""
    blocks = rng.permutation(np.arange(n) % k)
    same = blocks[:, None] == blocks[None, :]
    prob = np.where(same, p_in, p_out)
    upper = np.triu(rng.random((n, n)) < prob, k=1)
    adj = (upper | upper.T).astype(np.float32)
    return adj, blocks


def sample_features(blocks, k, dim, rng):
    # every club has a topic distribution over interests, features are counts
    topics = rng.dirichlet(np.full(dim, 0.3), size=k)
    mixed = 0.45 * topics[blocks] + 0.55 / dim
    counts = np.stack([rng.multinomial(12, p) for p in mixed]).astype(np.float32)
    return counts / counts.sum(1, keepdims=True)


def normalise(adj):
    """D^-1/2 (A + I) D^-1/2"""
    a = adj + np.eye(len(adj), dtype=np.float32)
    d = 1.0 / np.sqrt(a.sum(1))
    return d[:, None] * a * d[None, :]


def make_masks(blocks, k, per_class, n_val, rng):
    n = len(blocks)
    train = np.zeros(n, dtype=bool)
    for c in range(k):
        train[rng.choice(np.flatnonzero(blocks == c), per_class, replace=False)] = True
    rest = rng.permutation(np.flatnonzero(~train))
    val, test = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    val[rest[:n_val]] = True
    test[rest[n_val:]] = True
    return train, val, test


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        bound = math.sqrt(6.0 / (in_features + out_features))
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x, adj):
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.dropout(x, self.dropout, training=self.training)
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.gc2(x, adj)
        return F.log_softmax(x, dim=1)


def accuracy(output, labels):
    return (output.argmax(1) == labels).float().mean().item()


def main():
    args = parse_args()
    rng = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)

    adj, blocks = sample_sbm(args.nodes, args.clubs, args.p_in, args.p_out, rng)
    feats = sample_features(blocks, args.clubs, 64, rng)
    masks = make_masks(blocks, args.clubs, args.labelled_per_club, 200, rng)
    idx_train, idx_val, idx_test = (torch.from_numpy(np.flatnonzero(m)) for m in masks)

    adj = torch.from_numpy(normalise(adj))
    features = torch.from_numpy(feats)
    # column-standardise the interests, otherwise they are all ~1/64
    features = (features - features.mean(0)) / (features.std(0) + 1e-6)
    labels = torch.from_numpy(blocks).long()
    print(f"nodes {args.nodes} train {len(idx_train)} val {len(idx_val)} test {len(idx_test)}")

    model = GCN(features.shape[1], args.hidden, args.clubs, args.dropout)
    # as in the paper: L2 on the first layer only
    optimizer = torch.optim.Adam(
        [
            {"params": model.gc1.parameters(), "weight_decay": args.weight_decay},
            {"params": model.gc2.parameters(), "weight_decay": 0.0},
        ],
        lr=args.lr,
    )

    best_val, best_epoch = 0.0, -1
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        acc_train = accuracy(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()

        # evaluate without dropout
        model.eval()
        with torch.no_grad():
            output = model(features, adj)
            loss_val = F.nll_loss(output[idx_val], labels[idx_val]).item()
            acc_val = accuracy(output[idx_val], labels[idx_val])
        if acc_val > best_val:
            best_val, best_epoch = acc_val, epoch
            torch.save({"epoch": epoch, "state_dict": model.state_dict()}, "gcn_best.pt")

        if epoch % 10 == 0 or epoch == args.epochs - 1:
            print(
                f"Epoch: {epoch:04d} loss_train: {loss_train.item():.4f} acc_train: {acc_train:.4f} "
                f"loss_val: {loss_val:.4f} acc_val: {acc_val:.4f}"
            )

    print(f"best validation {best_val:.4f} at epoch {best_epoch}, loading it")
    model.load_state_dict(torch.load("gcn_best.pt")["state_dict"])
    model.eval()
    with torch.no_grad():
        output = model(features, adj)
        loss_test = F.nll_loss(output[idx_test], labels[idx_test]).item()
    print(f"Test set results: loss= {loss_test:.4f} accuracy= {accuracy(output[idx_test], labels[idx_test]):.4f}")


if __name__ == "__main__":
    main()
