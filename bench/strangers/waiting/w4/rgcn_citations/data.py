import torch


def make_graph(n=600, n_rel=3, n_cls=4, feat=16, seed=0):
    """Synthetic relational graph: relation 0 is homophilic, 1 weakly so, 2 is noise."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(n_cls, (n,), generator=g)
    same = (y[:, None] == y[None, :]).float()
    probs = [0.002 + 0.018 * same, 0.004 + 0.006 * same, torch.full((n, n), 0.006)]
    adjs = []
    for p in probs[:n_rel]:
        a = (torch.rand(n, n, generator=g) < p).float()
        a = ((a + a.t()) > 0).float()
        deg = a.sum(1, keepdim=True).clamp(min=1)
        adjs.append(a / deg)
    centers = torch.randn(n_cls, feat, generator=g)
    x = 0.6 * centers[y] + torch.randn(n, feat, generator=g)
    perm = torch.randperm(n, generator=g)
    return x, torch.stack(adjs), y, perm[:120], perm[120:240], perm[240:]
