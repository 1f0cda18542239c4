import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

from gcn import GCN, normalised_adjacency
from options import load_options


def build_graph(n=700):
    x, y = load_digits(return_X_y=True)
    x, y = x[:n] / 16.0, y[:n]
    coo = kneighbors_graph(x, 6).tocoo()
    adj = normalised_adjacency((torch.tensor(coo.row).long(), torch.tensor(coo.col).long()), n)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y), adj


def main():
    opt = load_options()
    torch.manual_seed(opt.seed)
    x, y, adj = build_graph()
    order = torch.randperm(len(y))
    train, valid, test = order[:100], order[100:250], order[250:]
    model = GCN(x.shape[1], opt.hidden, 10, opt.layers, opt.dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr, weight_decay=5e-4)
    best_val, best_test = 0.0, 0.0
    for epoch in range(1, opt.epochs + 1):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, adj)[train], y[train])
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            hit = (model(x, adj).argmax(1) == y).float()
        if hit[valid].mean() > best_val:
            best_val, best_test = hit[valid].mean().item(), hit[test].mean().item()
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d} loss {loss.item():.4f} val {hit[valid].mean():.3f}")
    print(f"test accuracy at best validation: {best_test:.3f}")


if __name__ == "__main__":
    main()
