import torch
import torch.nn.functional as F
from torch import optim

from gcn import GCN, normalized_adjacency


def citation_graph(n=400, k=4, d=50, seed=0):
    """Planted communities with noisy bag-of-words features."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(k, (n,), generator=g)
    same = y[:, None] == y[None, :]
    p = torch.where(same, torch.tensor(0.04), torch.tensor(0.004))
    upper = torch.triu(torch.rand(n, n, generator=g) < p, diagonal=1)
    topics = torch.rand(k, d, generator=g)
    x = (torch.rand(n, d, generator=g) < 0.05 + 0.12 * topics[y]).float()
    x = x / x.sum(1, keepdim=True).clamp(min=1)
    perm = torch.randperm(n, generator=g)
    return x, y, upper.nonzero().t(), perm[:80], perm[80:160], perm[160:]


def accuracy(output, labels):
    return (output.max(1)[1] == labels).double().mean().item()


torch.manual_seed(42)
features, labels, edges, idx_train, idx_val, idx_test = citation_graph()
adj = normalized_adjacency(edges, len(labels))
model = GCN(features.size(1), 16, int(labels.max()) + 1)
optimizer = optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def train(epoch):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()

    model.eval()
    with torch.no_grad():
        output = model(features, adj)
        loss_val = F.nll_loss(output[idx_val], labels[idx_val])
    if epoch % 25 == 0:
        print(f"epoch {epoch:03d} train {loss_train.item():.4f} val {loss_val.item():.4f} "
              f"acc {accuracy(output[idx_val], labels[idx_val]):.3f}")


for epoch in range(1, 151):
    train(epoch)

model.eval()
with torch.no_grad():
    output = model(features, adj)
print("test acc", accuracy(output[idx_test], labels[idx_test]), "mean confidence", output.exp().max(1)[0].mean().item())
