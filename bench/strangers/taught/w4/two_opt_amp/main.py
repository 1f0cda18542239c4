import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from trainer import TwoTowerTrainer


class TwoTower(nn.Module):
    def __init__(self, n_users, n_items, dim=32):
        super().__init__()
        self.users = nn.Embedding(n_users, dim, sparse=True)
        self.items = nn.Embedding(n_items, dim, sparse=True)
        self.user_mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, dim))
        self.item_mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, dim))

    def sparse_parameters(self):
        return [self.users.weight, self.items.weight]

    def dense_parameters(self):
        return [*self.user_mlp.parameters(), *self.item_mlp.parameters()]

    def user_vectors(self, u):
        return F.normalize(self.user_mlp(self.users(u)), dim=1)

    def item_vectors(self, i=None):
        i = torch.arange(self.items.num_embeddings, device=self.items.weight.device) if i is None else i
        return F.normalize(self.item_mlp(self.items(i)), dim=1)

    def forward(self, u, i):
        return self.user_vectors(u), self.item_vectors(i)


class Pairs:
    def __init__(self, u, i):
        self.u, self.i = u, i

    def __len__(self):
        return len(self.u)

    def split(self, n):
        return zip(self.u.split(n), self.i.split(n))


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    n_u, n_i, groups = 400, 200, 10
    u = torch.randint(n_u, (24000,))
    i = (torch.randint(n_i // groups, (24000,)) * groups + u % groups)   # each user likes one group
    train = DataLoader(TensorDataset(u[:22000], i[:22000]), batch_size=64, shuffle=True, drop_last=True)
    test = Pairs(u[22000:].to(device), i[22000:].to(device))
    trainer = TwoTowerTrainer(TwoTower(n_u, n_i), device)
    for epoch in range(4):
        trainer.epoch(train)
        print(f"epoch {epoch} recall@10 {trainer.recall(test):.3f}")


if __name__ == "__main__":
    main()
