"""Transductive node classification: the whole graph is known, only some labels are."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
N, CLUBS, DIM = 400, 4, 16


def social_graph():
    club = torch.randint(0, CLUBS, (N,))
    same = club[:, None] == club[None, :]
    p = torch.where(same, 0.06, 0.008)
    edges = torch.triu(torch.rand(N, N) < p, 1)
    adj = (edges | edges.t()).float()
    feats = torch.randn(N, DIM)
    feats[torch.arange(N), club] += 1.0
    return adj, F.normalize(feats, dim=1), club


class SAGELayer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.own, self.nbr = nn.Linear(i, o), nn.Linear(i, o, bias=False)

    def forward(self, h, mean_adj):
        return self.own(h) + self.nbr(mean_adj @ h)


class SAGE(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.l1, self.l2 = SAGELayer(DIM, hidden), SAGELayer(hidden, CLUBS)

    def forward(self, h, mean_adj):
        h = F.dropout(F.relu(self.l1(h, mean_adj)), p=0.4, training=self.training)
        return self.l2(h, mean_adj)


adj, feats, club = social_graph()
mean_adj = adj / adj.sum(1, keepdim=True).clamp(min=1)

order = torch.randperm(N)
part = torch.empty(N, dtype=torch.long)
part[order[:80]], part[order[80:200]], part[order[200:]] = 0, 1, 2
is_train, is_val, is_test = (part == k for k in range(3))

# labels the model must not see are hidden from the loss
visible = torch.where(is_train, club, torch.full_like(club, -1))

net = SAGE()
opt = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=5e-4)
best, report, patience = 0.0, 0.0, 0
for epoch in range(150):
    net.train()
    loss = F.cross_entropy(net(feats, mean_adj), visible, ignore_index=-1)
    opt.zero_grad()
    loss.backward()
    opt.step()

    net.eval()
    with torch.no_grad():
        hit = (net(feats, mean_adj).argmax(1) == club).float()
    val = hit[is_val].mean().item()
    if val > best:
        best, report, patience = val, hit[is_test].mean().item(), 0
    else:
        patience += 1
    if epoch % 15 == 0:
        print(f"epoch {epoch:3d} loss {loss.item():.3f} val {val:.3f}")
    if patience > 40:
        print("stopped at epoch", epoch)
        break
print(f"val {best:.3f}, test at that epoch {report:.3f}")
