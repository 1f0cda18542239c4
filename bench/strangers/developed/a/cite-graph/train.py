# Node classification on a citation-like graph (planted communities), transductive setting.
import torch
from torch import nn
from torch.nn import Parameter

torch.manual_seed(42)


def planted_graph(n=300, k=4, feat=30, p_in=0.06, p_out=0.008):
    y = torch.arange(n) % k
    same = y[:, None] == y[None]
    upper = torch.triu(torch.rand(n, n) < torch.where(same, p_in, p_out), diagonal=1)
    adj = (upper | upper.t()).float()
    topic = torch.rand(k, feat) < 0.25
    x = (torch.rand(n, feat) < torch.where(topic[y], 0.35, 0.08)).float()
    perm = torch.randperm(n)
    masks = [torch.zeros(n, dtype=torch.bool) for _ in range(3)]
    for m, part in zip(masks, perm.split([60, 80, 160])):
        m[part] = True
    return x, y, adj, masks


def normalise(adj):
    a = adj + torch.eye(len(adj))
    d = a.sum(1).rsqrt()
    return (d[:, None] * a * d[None]).to_sparse()


class GraphConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = Parameter(torch.empty(i, o))
        self.bias = Parameter(torch.zeros(o))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, a):
        return torch.sparse.mm(a, x @ self.weight) + self.bias


class GCN(nn.Module):
    """Two graph convolutions. Returns raw scores, so that the exported model can be calibrated later."""

    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConv(nfeat, nhid)
        self.gc2 = GraphConv(nhid, nclass)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, a):
        h = torch.relu(self.gc1(self.drop(x), a))
        return self.gc2(self.drop(h), a)


x, y, adj, (train_mask, val_mask, test_mask) = planted_graph()
A = normalise(adj)
counts = torch.bincount(y[train_mask], minlength=4).float()

model = GCN(x.size(1), 16, 4, 0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
criterion = nn.NLLLoss(weight=counts.sum() / (4 * counts))


def train():
    model.train()
    optimizer.zero_grad()
    out = model(x, A)
    loss = criterion(out[train_mask], y[train_mask])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test():
    model.eval()
    pred = model(x, A).argmax(1)
    return [(pred[m] == y[m]).float().mean().item() for m in (train_mask, val_mask, test_mask)]


best_val, best_test = 0.0, 0.0
for epoch in range(1, 121):
    loss = train()
    tr, va, te = test()
    if va > best_val:
        best_val, best_test = va, te
    if epoch % 30 == 0:
        print(f"Epoch {epoch:03d} loss {loss:.4f} train {tr:.3f} val {va:.3f}")
print(f"best val {best_val:.3f} -> test {best_test:.3f}")
