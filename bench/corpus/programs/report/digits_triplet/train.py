# # Metric learning on the 8x8 digits
# (notebook exported to a script)
# Triplet loss over all triplets of a class-balanced batch, evaluated as retrieval: for each
# shifted and noisy query we look for the nearest neighbour in the clean gallery.

import json
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Sampler, TensorDataset
from tqdm import tqdm

SEED = int(os.environ.get("SEED", "0"))
np.random.seed(SEED)
torch.manual_seed(SEED)

EPOCHS = 7
PER_CLASS = 4      # images of each digit in a batch
EMB_DIM = 16
MARGIN = 0.5
LR = 5e-3
EMA_DECAY = 0.95
PAD = 1            # digits may move by this many pixels

# ## Data

X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
y = torch.tensor(y)
perm = torch.from_numpy(np.random.RandomState(42).permutation(len(y)))
train_idx, test_idx = perm[:1250], perm[1250:]
print("train", len(train_idx), "test", len(test_idx))


class BalancedBatches(Sampler):
    """every batch holds PER_CLASS images of each class"""

    def __init__(self, labels, per_class):
        self.pools = [torch.where(labels == k)[0] for k in labels.unique()]
        self.per_class = per_class

    def __len__(self):
        return min(len(p) for p in self.pools) // self.per_class

    def __iter__(self):
        shuffled = [p[torch.randperm(len(p))] for p in self.pools]
        for b in range(len(self)):
            part = slice(b * self.per_class, (b + 1) * self.per_class)
            yield torch.cat([p[part] for p in shuffled]).tolist()


def distort(images, generator=None):
    """random shift of each image + gaussian noise"""
    n, _, h, w = images.shape
    big = F.pad(images, (2 * PAD,) * 4)
    dr, dc = torch.randint(0, 2 * PAD + 1, (2, n), generator=generator)
    rows = dr[:, None] + torch.arange(h + 2 * PAD)
    cols = dc[:, None] + torch.arange(w + 2 * PAD)
    out = big[torch.arange(n)[:, None, None], 0, rows[:, :, None], cols[:, None, :]]
    return (out + 0.05 * torch.randn(out.shape, generator=generator)).unsqueeze(1)


train_ds = TensorDataset(X[train_idx], y[train_idx])
train_dl = DataLoader(train_ds, batch_sampler=BalancedBatches(y[train_idx], PER_CLASS))

# fixed gallery (centred, clean) and fixed distorted queries
gallery, gallery_y = F.pad(X[train_idx], (PAD,) * 4), y[train_idx]
queries = distort(X[test_idx], torch.Generator().manual_seed(123))
queries_y = y[test_idx]

# ## Model


class EmbeddingNet(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(24 * 4, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        return F.normalize(self.head(self.features(x)), dim=1)


def triplet_loss(emb, labels):
    """mean hinge over all triplets of the batch, plus the share that still violates the margin"""
    sq = 2.0 - 2.0 * emb @ emb.t()                     # squared distances on the sphere
    same = labels[:, None] == labels[None, :]
    eye = torch.eye(len(labels), dtype=torch.bool)
    valid = (same & ~eye)[:, :, None] & ~same[:, None, :]   # anchor, positive, negative
    hinge = F.relu(sq[:, :, None] - sq[:, None, :] + MARGIN) * valid
    n = valid.sum()
    return hinge.sum() / n, ((hinge > 0).sum() / n).item()


net = EmbeddingNet(EMB_DIM)
ema_net = torch.optim.swa_utils.AveragedModel(
    net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(EMA_DECAY), use_buffers=True)
opt = torch.optim.Adam(net.parameters(), lr=LR)
sched = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[5, 6], gamma=0.3)


@torch.no_grad()
def recall_at_1(model):
    model.eval()
    d = torch.cdist(model(queries), model(gallery))
    nearest = gallery_y[d.argmin(dim=1)]
    return (nearest == queries_y).float().mean().item()


print(f"untrained network: {recall_at_1(net):.4f}")

# ## Train

history = []
for epoch in range(EPOCHS):
    net.train()
    ep_loss, active = 0.0, 0.0
    for imgs, labels in tqdm(train_dl, desc=f"epoch {epoch + 1}/{EPOCHS}", leave=False, mininterval=1.0):
        emb = net(distort(imgs))
        loss, share = triplet_loss(emb, labels)
        loss.backward()
        opt.step()
        opt.zero_grad()
        ema_net.update_parameters(net)
        ep_loss += loss.item()
        active += share
    sched.step()
    r1 = recall_at_1(ema_net)
    row = {"epoch": epoch + 1, "loss": ep_loss / len(train_dl), "active": active / len(train_dl), "recall1": r1}
    history.append(row)
    print(f"epoch {epoch + 1:2d}  loss = {row['loss']:.4f}  active triplets = {row['active']:.3f}  "
          f"recall@1 = {r1:.4f}")

with open("history.jsonl", "w") as fh:
    for row in history:
        fh.write(json.dumps(row) + "\n")
torch.save(ema_net.module.state_dict(), "embedding.pt")

# ## Result
print(f"final recall@1 = {recall_at_1(ema_net):.4f}")
