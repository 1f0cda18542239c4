import torch, torch.nn as nn, torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
D, Z, C, E, H = 64, 8, 10, 6, 128

X, Y = (torch.tensor(a) for a in load_digits(return_X_y=True))
X, Y = X.float() / 16, Y.long()
perm = torch.randperm(len(X))
tr, te = perm[:1400], perm[1400:]


def mlp(*s):
    return nn.Sequential(*[m for a, b in zip(s[:-2], s[1:-1]) for m in (nn.Linear(a, b), nn.ReLU())], nn.Linear(*s[-2:]))


class CVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Embedding(C, E)
        self.q = mlp(D + E, H, 2 * Z)
        self.p = mlp(Z + C, H, D)

    def forward(self, x, y):
        e = self.c(y)
        m, s = self.q(torch.cat([x, e], -1)).chunk(2, -1)
        z = m + torch.randn_like(m) * (s / 2).exp()
        return self.p(torch.cat([z, e], -1)), m, s

    @torch.no_grad()
    def sample(self, y):
        return self.p(torch.cat([torch.randn(len(y), Z), self.c(y)], -1)).sigmoid()


def nelbo(f, x, y):
    r, m, s = f(x, y)
    rec = F.binary_cross_entropy_with_logits(r, x, reduction="none").sum(-1)
    kl = 0.5 * (m ** 2 + s.exp() - 1 - s).sum(-1)
    return (rec + kl).mean()


f = CVAE()
opt = torch.optim.Adam(f.parameters(), 2e-3)
for ep in range(10):
    f.train()
    for i in tr[torch.randperm(len(tr))].split(100):
        l = nelbo(f, X[i], Y[i])
        opt.zero_grad(); l.backward(); opt.step()
    f.eval()
    with torch.no_grad():
        print(ep, l.item(), nelbo(f, X[te], Y[te]).item())
torch.save(f.sample(torch.arange(10)), "samples.pt")
