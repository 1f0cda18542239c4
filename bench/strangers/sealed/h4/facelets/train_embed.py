import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from losses import supervised_contrastive
from sampling import IdentityBatchSampler


def portraits(n_ids, per_id, seed, dim=64):
    g = torch.Generator().manual_seed(seed)
    mix = torch.randn(12, dim, generator=torch.Generator().manual_seed(999))
    latent = torch.randn(n_ids, 12, generator=g).repeat_interleave(per_id, 0)
    nuisance = torch.randn(12, dim, generator=torch.Generator().manual_seed(998))
    x = latent @ mix * 0.35 + torch.randn(n_ids * per_id, 12, generator=g) @ nuisance + 0.3 * torch.randn(
        n_ids * per_id, dim, generator=g)
    return x, torch.arange(n_ids).repeat_interleave(per_id)


class Embedder(nn.Module):
    def __init__(self, dim=64, out=24):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, out))

    def forward(self, x):
        return F.normalize(self.f(x), dim=1)


@torch.no_grad()
def recall_at_1(model, x, ident):
    model.eval()
    z = model(x)
    sim = z @ z.t()
    sim.fill_diagonal_(-2)
    return (ident[sim.argmax(1)] == ident).float().mean().item()


def main():
    torch.manual_seed(0)
    train = TensorDataset(*portraits(60, 10, seed=1))
    query = portraits(30, 6, seed=2)
    sampler = IdentityBatchSampler(train.tensors[1], p=12, k=4, batches=60)
    loader = DataLoader(train, batch_sampler=sampler)
    model = Embedder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    print(f"untrained  recall@1 {recall_at_1(model, *query):.3f}")
    for epoch in range(8):
        model.train()
        total = 0.0
        for x, ident in loader:
            loss = supervised_contrastive(model(x), ident)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}  loss {total / len(loader):.3f}  recall@1 {recall_at_1(model, *query):.3f}")


if __name__ == "__main__":
    main()
