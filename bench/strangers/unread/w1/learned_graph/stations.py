"""Traffic sensors: graph convolution over an adjacency that is itself learned."""
import argparse

import torch
from torch import nn


class LearnedAdjacency(nn.Module):
    def __init__(self, n_nodes, rank, sparsity=6):
        super().__init__()
        self.src = nn.Parameter(torch.randn(n_nodes, rank) * 0.3)
        self.dst = nn.Parameter(torch.randn(n_nodes, rank) * 0.3)
        self.sparsity = sparsity
        self._dense = None

    def forward(self):
        if self._dense is None:
            score = torch.relu(self.src @ self.dst.T)
            kth = score.topk(self.sparsity, dim=1).values[:, -1:]
            kept = torch.where(score >= kth, score, torch.zeros_like(score))
            self._dense = (kept + torch.eye(len(kept), device=kept.device)).softmax(dim=1)
        return self._dense


class SensorNet(nn.Module):
    def __init__(self, n_nodes, past, hidden=32, rank=8):
        super().__init__()
        self.adjacency = LearnedAdjacency(n_nodes, rank)
        self.embed = nn.Linear(past, hidden)
        self.mix = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(2)])
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):                       # x: batch, nodes, past
        a = self.adjacency()
        h = torch.relu(self.embed(x))
        for layer in self.mix:
            h = h + torch.relu(layer(a @ h))
        return self.out(h).squeeze(-1)


def simulate(steps, nodes, g):
    ring = torch.eye(nodes).roll(1, 0) * 0.5 + torch.eye(nodes) * 0.45
    flow = torch.zeros(steps, nodes)
    flow[0] = torch.randn(nodes, generator=g)
    for t in range(1, steps):
        flow[t] = ring @ flow[t - 1] + 0.3 * torch.randn(nodes, generator=g)
    return flow


def cut(flow, past):
    x = torch.stack([flow[i:i + past].T for i in range(len(flow) - past)])
    return x, flow[past:]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nodes", type=int, default=12)
    p.add_argument("--past", type=int, default=8)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=2e-3)
    a = p.parse_args()
    torch.manual_seed(8)
    flow = simulate(1500, a.nodes, torch.Generator().manual_seed(8))
    flow = (flow - flow[:1200].mean()) / flow[:1200].std()
    x_tr, y_tr = cut(flow[:1200], a.past)
    x_va, y_va = cut(flow[1200:], a.past)
    net = SensorNet(a.nodes, a.past)
    opt = torch.optim.Adam(net.parameters(), lr=a.lr)
    for epoch in range(a.epochs):
        net.train()
        for idx in torch.randperm(len(x_tr)).split(a.batch_size):
            opt.zero_grad()
            loss = nn.functional.mse_loss(net(x_tr[idx]), y_tr[idx])
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(net(x_va), y_va).item()
        print(f"epoch {epoch} train {loss.item():.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
