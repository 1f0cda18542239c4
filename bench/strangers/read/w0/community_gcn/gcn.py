import argparse
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Graph:
    x: torch.Tensor
    y: torch.Tensor
    adj: torch.Tensor
    train_mask: torch.Tensor
    test_mask: torch.Tensor
    deg: torch.Tensor | None = None

    @property
    def scale(self):
        if self.deg is None:
            self.deg = torch.sparse.sum(self.adj, 1).to_dense().clamp(min=1).rsqrt()
        return self.deg

    def to(self, device):
        moved = {f.name: getattr(self, f.name).to(device) for f in fields(self) if f.default is not None}
        return replace(self, **moved)


def block_model(n=300, k=3, p_in=0.08, p_out=0.01, dim=16):
    y = torch.arange(n) % k
    prob = torch.where(y[:, None] == y[None], p_in, p_out)
    a = torch.bernoulli(prob).triu(1)
    a = a + a.T + torch.eye(n)
    x = torch.randn(n, dim) + 0.5 * F.one_hot(y, dim).float()
    order = torch.randperm(n)
    train_mask = torch.zeros(n, dtype=torch.bool)
    train_mask[order[: n // 5]] = True
    return Graph(x, y, a.to_sparse_coo().coalesce(), train_mask, ~train_mask)


class Gcn(nn.Module):
    def __init__(self, d_in, d_hid, d_out):
        super().__init__()
        self.l1, self.l2 = nn.Linear(d_in, d_hid), nn.Linear(d_hid, d_out)

    def propagate(self, g, h):
        s = g.scale[:, None]
        return s * torch.sparse.mm(g.adj, s * h)

    def forward(self, g):
        h = F.relu(self.propagate(g, self.l1(g.x)))
        h = F.dropout(h, 0.4, self.training)
        return self.propagate(g, self.l2(h))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--epochs", type=int, default=60)
    args = p.parse_args()
    torch.manual_seed(13)
    graph = block_model()
    print(f"{len(graph.y)} nodes, mean degree {(graph.scale ** -2).mean().item():.1f}")
    graph = graph.to(args.device)
    model = Gcn(16, 32, 3).to(args.device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    for epoch in range(args.epochs):
        model.train()
        loss = F.cross_entropy(model(graph)[graph.train_mask], graph.y[graph.train_mask])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 15 == 14:
            model.eval()
            with torch.no_grad():
                hit = (model(graph).argmax(1) == graph.y)[graph.test_mask].float().mean()
            print(f"epoch {epoch + 1} loss {loss.item():.3f} test {hit.item():.3f}")


if __name__ == "__main__":
    main()
