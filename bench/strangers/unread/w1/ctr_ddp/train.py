"""torchrun --nproc_per_node 2 train.py --epochs 2"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from config import TrainConfig


class FactorisationMachine(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        total = cfg.n_fields * cfg.cardinality
        self.register_buffer("offset", torch.arange(cfg.n_fields) * cfg.cardinality)
        self.linear = nn.Embedding(total, 1)
        self.factors = nn.Embedding(total, cfg.dim)
        nn.init.normal_(self.factors.weight, std=0.05)
        nn.init.zeros_(self.linear.weight)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        x = x + self.offset
        v = self.factors(x)
        pair = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(-1)
        return self.bias + self.linear(x).sum((1, 2)) + pair


def clicks(cfg, n, seed):
    g = torch.Generator().manual_seed(seed)
    truth = torch.randn(cfg.n_fields, cfg.cardinality, generator=torch.Generator().manual_seed(1))
    x = torch.randint(cfg.cardinality, (n, cfg.n_fields), generator=g)
    logit = truth[torch.arange(cfg.n_fields), x].sum(1) * 0.8 - 1
    return TensorDataset(x, torch.bernoulli(logit.sigmoid(), generator=g))


def make_loader(cfg, dataset, train):
    sampler = DistributedSampler(dataset, shuffle=train, seed=cfg.seed) if cfg.world_size > 1 else None
    return DataLoader(dataset, cfg.batch_size, shuffle=train and sampler is None, sampler=sampler, drop_last=train)


def evaluate(model, loader, criterion):
    model.eval()
    stat = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            stat += torch.tensor([criterion(model(x), y).item() * len(y), float(len(y))])
    dist.all_reduce(stat)
    return (stat[0] / stat[1]).item()


def main():
    cfg = TrainConfig.from_cli()
    dist.init_process_group(cfg.backend)
    rank = dist.get_rank()
    torch.manual_seed(cfg.seed)

    train_loader = make_loader(cfg, clicks(cfg, cfg.rows, 10), train=True)
    val_loader = make_loader(cfg, clicks(cfg, cfg.rows // 4, 11), train=False)
    model = DDP(FactorisationMachine(cfg))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=cfg.lr)

    for epoch in range(cfg.epochs):
        if isinstance(train_loader.sampler, DistributedSampler):
            train_loader.sampler.set_epoch(epoch)
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        val = evaluate(model, val_loader, criterion)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} val {val:.4f}", flush=True)
            torch.save(model.module.state_dict(), "/tmp/ctr_w1.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
