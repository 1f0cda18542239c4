# GraphSAGE (mean) on a planted-partition graph. v1 was full batch, now sampled neighbourhoods.
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED, N, C, D = 11, 600, 4, 16
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)


def sbm(n, c, p_in=0.04, p_out=0.006):
    y = rng.integers(0, c, n)
    p = np.where(y[:, None] == y[None, :], p_in, p_out)
    a = np.triu(rng.random((n, n)) < p, 1)
    a = a | a.T
    return [np.flatnonzero(r) for r in a], y


adj, y_np = sbm(N, C)
mu = rng.normal(size=(C, D)) * 0.6
X = torch.tensor(mu[y_np] + rng.normal(size=(N, D)), dtype=torch.float32)
Y = torch.tensor(y_np)
perm = rng.permutation(N)
tr, va, te = perm[:300], perm[300:400], perm[400:]


def sample(nodes, k=8):
    """k neighbours with replacement (self if isolated) -> LongTensor [len(nodes), k]"""
    out = np.empty((len(nodes), k), dtype=np.int64)
    for i, v in enumerate(nodes):
        nb = adj[v]
        out[i] = rng.choice(nb, k) if len(nb) else v
    return torch.from_numpy(out)


class SAGE(nn.Module):
    def __init__(self, d, h, c):
        super().__init__()
        self.s1, self.n1 = nn.Linear(d, h), nn.Linear(d, h, bias=False)
        self.s2, self.n2 = nn.Linear(h, c), nn.Linear(h, c, bias=False)
        self.drop = nn.Dropout(0.3)

    def hop1(self, idx):
        flat = idx.reshape(-1)
        nb = sample(flat.numpy())
        h = F.relu(self.s1(X[flat]) + self.n1(X[nb].mean(1)))
        return self.drop(h).view(*idx.shape, -1)

    def forward(self, nodes):
        idx = torch.as_tensor(nodes)
        nb = sample(nodes)
        return self.s2(self.hop1(idx)) + self.n2(self.hop1(nb).mean(1))


net = SAGE(D, 32, C)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)


def run_epoch(bs=32):
    net.train()
    opt.zero_grad()
    tot = 0.0
    order = rng.permutation(tr)
    for b in np.array_split(order, len(order) // bs):
        loss = F.cross_entropy(net(b), Y[b])
        loss.backward()
        opt.step()
        tot += loss.item() * len(b)
    return tot / len(tr)


@torch.no_grad()
def acc(nodes):
    net.eval()
    return (net(nodes).argmax(1) == Y[nodes]).float().mean().item()


best, best_state = 0.0, None
for ep in range(15):
    l = run_epoch()
    v = acc(va)
    if v > best:
        best, best_state = v, {k: t.clone() for k, t in net.state_dict().items()}
    print(f"{ep:02d} loss={l:.4f} val={v:.3f}")

net.load_state_dict(best_state)
print("test", round(acc(te), 3))
