import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def load(seed):
    x, y = make_classification(1600, 20, n_informative=8, n_classes=4, random_state=seed)
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.25, random_state=seed, stratify=y)
    sc = StandardScaler().fit(xa)
    to = lambda x, y: TensorDataset(torch.tensor(sc.transform(x), dtype=torch.float32), torch.tensor(y))
    return to(xa, ya), to(xb, yb)


def loaders(cfg, rank, world):
    """Returns train loader, train sampler, validation loader (this rank's slice)."""
    train, val = load(cfg.seed)
    sampler = DistributedSampler(train, num_replicas=world, rank=rank, shuffle=True, seed=cfg.seed)
    common = dict(num_workers=cfg.workers, pin_memory=torch.cuda.is_available())
    train_loader = DataLoader(train, batch_size=cfg.batch, shuffle=True, drop_last=True, **common)
    mine = torch.utils.data.Subset(val, range(rank, len(val), world))
    val_loader = DataLoader(mine, batch_size=256, **common)
    return train_loader, sampler, val_loader
