"""GCN (Kipf & Welling) without PyG, on a stochastic block model graph."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N, C, D = 600, 4, 200


def sbm():
    y = torch.arange(N) % C
    same = y[:, None] == y[None, :]
    prob = torch.where(same, 0.012, 0.005)
    a = torch.bernoulli(prob).triu(1)
    a = a + a.t() + torch.eye(N)
    d = a.sum(1).pow(-0.5)
    x = torch.randn(N, D)
    x[torch.arange(N), y] += 1.0
    return d[:, None] * a * d[None, :], x, y


class GCN(nn.Module):
    def __init__(self, hid=32):
        super().__init__()
        self.w1 = nn.Linear(D, hid)
        self.w2 = nn.Linear(hid, C)

    def forward(self, a, x):
        h = F.dropout(x, 0.5, self.training)
        h = F.relu(a @ self.w1(h))
        h = F.dropout(h, 0.5, self.training)
        return a @ self.w2(h)


adj, feats, labels = sbm()
perm = torch.randperm(N)
masks = {}
for name, idx in zip(("train", "val", "test"), perm.split([120, 180, 300])):
    m = torch.zeros(N, dtype=torch.bool)
    m[idx] = True
    masks[name] = m

net = GCN()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)


def step(mask):
    net.train()
    optimizer.zero_grad()
    out = net(adj, feats)
    loss = F.cross_entropy(out[mask], labels[mask])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracies():
    net.eval()
    pred = net(adj, feats).argmax(1)
    res = {}
    for name, m in masks.items():
        correct = pred[mask] == labels[mask]
        res[name] = correct.float().mean().item()
    return res


best_val, best_test = 0, 0
mask = masks["train"]
for epoch in range(1, 151):
    loss = step(mask)
    acc = accuracies()
    if acc["val"] > best_val:
        best_val, best_test = acc["val"], acc["test"]
    if epoch % 30 == 0:
        print(f"{epoch:03d} loss {loss:.3f} train {acc['train']:.3f} val {acc['val']:.3f} test {acc['test']:.3f}")
print(f"test accuracy at best val: {best_test:.3f}")
