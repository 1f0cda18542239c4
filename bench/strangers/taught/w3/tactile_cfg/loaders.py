import torch
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset


def recordings(label, n, seed):
    """One recording session per material (stand-in for sessions/<material>.npz)."""
    proto = torch.randn(8, 16, generator=torch.Generator().manual_seed(label))
    g = torch.Generator().manual_seed(seed * 1000 + label)
    x = 0.7 * proto + torch.randn(n, 8, 16, generator=g)
    return TensorDataset(x, torch.full((n,), label))


def build(cfg):
    d, l = cfg["data"], cfg["loader"]
    train = ConcatDataset([recordings(k, d["per_class"], 1) for k in range(d["classes"])])
    val = ConcatDataset([recordings(k, d["per_class"] // 4, 2) for k in range(d["classes"])])
    common = {"batch_size": l["batch_size"], "num_workers": l.get("num_workers", 0)}
    return (DataLoader(train, shuffle=l.get("shuffle", False), **common),
            DataLoader(val, shuffle=False, **common))
