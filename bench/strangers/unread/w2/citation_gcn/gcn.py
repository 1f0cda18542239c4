# node classification on a stochastic block model, two-layer GCN
import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(3)
N, K, D = 300, 3, 16
g = torch.Generator().manual_seed(3)

y = torch.randint(0, K, (N,), generator=g)
same = y[:, None] == y[None, :]
P = torch.where(same, torch.tensor(0.06), torch.tensor(0.012))
A = (torch.rand(N, N, generator=g) < P).float().triu(1)
A = A + A.t() + torch.eye(N)
d = A.sum(1).rsqrt()
A_hat = d[:, None] * A * d[None, :]
X = torch.randn(N, D, generator=g) + 0.6 * F.one_hot(y, D).float()

perm = torch.randperm(N, generator=g)
idx_train, idx_val, idx_test = perm[:90], perm[90:150], perm[150:]


class GCN(nn.Module):
    def __init__(self, d_in, d_hid, n_cls, p=0.5):
        super().__init__()
        self.w1 = nn.Linear(d_in, d_hid, bias=False)
        self.w2 = nn.Linear(d_hid, n_cls, bias=False)
        self.p = p

    def encode(self, x, a):
        return F.relu(a @ self.w1(F.dropout(x, self.p, self.training)))

    def forward(self, x, a):
        h = F.dropout(self.encode(x, a), self.p, self.training)
        return a @ self.w2(h)

    def log_probs(self, x, a):
        return F.log_softmax(self(x, a), dim=-1)


def acc(logp, idx):
    return (logp[idx].argmax(-1) == y[idx]).float().mean().item()


net = GCN(D, 32, K)
opt = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=5e-4)
best, best_state = 0.0, None
for ep in range(1, 121):
    net.train()
    out = net(X, A_hat)
    loss = F.nll_loss(out[idx_train], y[idx_train])
    opt.zero_grad()
    loss.backward()
    opt.step()

    net.eval()
    with torch.no_grad():
        lp = net.log_probs(X, A_hat)
    v = acc(lp, idx_val)
    if v > best:
        best, best_state = v, {k: t.clone() for k, t in net.state_dict().items()}
    if ep % 20 == 0:
        print(f"{ep:4d} loss {loss.item():9.3f}  val nll {F.nll_loss(lp[idx_val], y[idx_val]):8.3f}  val acc {v:.3f}")

net.load_state_dict(best_state)
net.eval()
with torch.no_grad():
    print("test acc", round(acc(net.log_probs(X, A_hat), idx_test), 3))
