import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

from engine import fit_epoch, rmse
from nets import NeuMF


def synthetic_ratings(n_users=300, n_items=200, n=12000):
    g = torch.Generator().manual_seed(11)
    u = torch.randint(n_users, (n,), generator=g)
    i = torch.randint(n_items, (n,), generator=g)
    bu, bi = torch.randn(n_users, generator=g) * .5, torch.randn(n_items, generator=g) * .5
    pu, qi = torch.randn(n_users, 4, generator=g), torch.randn(n_items, 4, generator=g)
    r = 3.5 + bu[u] + bi[i] + 0.3 * (pu[u] * qi[i]).sum(1) + 0.2 * torch.randn(n, generator=g)
    return TensorDataset(u, i, r.clamp(1, 5))


def main():
    torch.manual_seed(0)
    data = synthetic_ratings()
    train, val = random_split(data, [0.85, 0.15], generator=torch.Generator().manual_seed(0))
    tl = DataLoader(train, 256, shuffle=True)
    vl = DataLoader(val, 1024)
    model = NeuMF(300, 200)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1, factor=0.5)
    for epoch in range(8):
        tr = fit_epoch(model, tl, opt)
        va = rmse(model, vl)
        sched.step(va)
        print(f"epoch {epoch} train rmse {tr:.3f} val rmse {va:.3f} lr {opt.param_groups[0]['lr']:.4f}")


if __name__ == "__main__":
    main()
