import numpy as np
import torch
from sklearn.datasets import load_digits

from engine import Embedder, batch_hard_loss, embed_all, recall_at_1

P, K = 8, 6          # classes per batch, images per class
STEPS = 400

torch.manual_seed(3)
rng = np.random.default_rng(3)

digits = load_digits()
imgs = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
labs = torch.tensor(digits.target)
order = torch.tensor(rng.permutation(len(labs)))
tr, ga, qu = order[:1000], order[1000:1400], order[1400:]
by_class = [tr[labs[tr] == c].numpy() for c in range(10)]


def pk_batch():
    classes = rng.choice(10, P, replace=False)
    idx = np.concatenate([rng.choice(by_class[c], K, replace=False) for c in classes])
    return imgs[idx], labs[idx]


model = Embedder()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(STEPS):
    model.train()
    x, y = pk_batch()
    loss, active = batch_hard_loss(model, x, y)
    loss.requires_grad_(True)
    opt.zero_grad()
    loss.backward()
    opt.step()

    if (step + 1) % 100 == 0:
        r1 = recall_at_1(embed_all(model, imgs[qu]), labs[qu], embed_all(model, imgs[ga]), labs[ga])
        print(f"step {step + 1}: loss {loss.item():.3f} active {active.item():.2f} R@1 {r1:.3f}")
