"""Metric learning with a triplet loss, trained through Accelerate.

"Faces" are rendered from a latent identity vector by a fixed random renderer with
pose and lighting as nuisance. Identities in train and test are disjoint; quality is
the share of test pictures whose nearest neighbour in embedding space is the same person.
"""
import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm

SIZE = 12


def render_people(n_people, shots, rng, renderer):
    """(n_people * shots, 1, 12, 12) pictures and the identity of each."""
    w_id, w_pose = renderer
    identity = rng.normal(size=(n_people, w_id.shape[0]))
    who = np.repeat(np.arange(n_people), shots)
    pose = rng.normal(size=(len(who), w_pose.shape[0]))
    pix = np.tanh(identity[who] @ w_id * 0.5 + pose @ w_pose)
    gain = rng.uniform(0.6, 1.4, size=(len(who), 1))
    pix = pix * gain + rng.normal(scale=0.15, size=pix.shape)
    return torch.tensor(pix, dtype=torch.float32).view(-1, 1, SIZE, SIZE), torch.tensor(who)


class TripletDataset(Dataset):
    """Each index is an anchor; positive and negative are drawn at random."""

    def __init__(self, images, who, seed):
        self.images, self.who = images, who
        self.members = {p: (who == p).nonzero().flatten().tolist() for p in who.unique().tolist()}
        self.people = list(self.members)
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        p = self.who[i].item()
        pos = i
        while pos == i:
            pos = self.members[p][self.rng.integers(len(self.members[p]))]
        q = p
        while q == p:
            q = self.people[self.rng.integers(len(self.people))]
        neg = self.members[q][self.rng.integers(len(self.members[q]))]
        return self.images[i], self.images[pos], self.images[neg]


class Embedder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Flatten(),
            nn.Linear(SIZE * SIZE, 128),
            nn.LayerNorm(128),
            nn.GELU(),
            nn.Linear(128, 64),
            nn.GELU(),
        )
        self.head = nn.Linear(64, dim)

    def forward(self, x):
        return F.normalize(self.head(self.features(x)), dim=-1)


@torch.no_grad()
def recall_at_1(model, loader, accelerator):
    model.eval()
    embs, ids = [], []
    for x, y in loader:
        e, y = accelerator.gather_for_metrics((model(x), y))
        embs.append(e)
        ids.append(y)
    embs, ids = torch.cat(embs), torch.cat(ids)
    sim = embs @ embs.T
    sim.fill_diagonal_(-2.0)
    return (ids[sim.argmax(1)] == ids).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--margin", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "0")))
    args = parser.parse_args()

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.gradient_accumulation_steps)
    set_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    renderer = (rng.normal(size=(8, SIZE * SIZE)), rng.normal(size=(6, SIZE * SIZE)))
    train_x, train_y = render_people(80, 12, rng, renderer)
    test_x, test_y = render_people(40, 8, rng, renderer)

    train_loader = DataLoader(
        TripletDataset(train_x, train_y, args.seed), batch_size=args.batch_size, shuffle=True, drop_last=True
    )
    test_loader = DataLoader(torch.utils.data.TensorDataset(test_x, test_y), batch_size=64)

    model = Embedder()
    no_decay = [p for n, p in model.named_parameters() if p.ndim == 1]
    decay = [p for n, p in model.named_parameters() if p.ndim > 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": args.weight_decay}, {"params": no_decay, "weight_decay": 0.0}], lr=args.lr
    )
    updates = args.epochs * len(train_loader) // args.gradient_accumulation_steps
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=updates + 1, pct_start=0.15)
    criterion = nn.TripletMarginLoss(margin=args.margin)

    model, optimizer, train_loader, test_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, test_loader, scheduler
    )

    accelerator.print(f"recall@1 before training {recall_at_1(model, test_loader, accelerator):.4f}")
    for epoch in range(args.epochs):
        model.train()
        total, violated = 0.0, 0.0
        progress = tqdm(train_loader, desc=f"epoch {epoch}", leave=False, disable=not accelerator.is_local_main_process)
        for anchor, positive, negative in progress:
            with accelerator.accumulate(model):
                a, p, n = model(torch.cat([anchor, positive, negative])).chunk(3)
                loss = criterion(a, p, n)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            total += loss.item()
            violated += ((a - p).norm(dim=1) > (a - n).norm(dim=1)).float().mean().item()
        r1 = recall_at_1(model, test_loader, accelerator)
        accelerator.print(
            f"epoch {epoch}: train_loss={total / len(train_loader):.4f} violated={violated / len(train_loader):.4f} "
            f"lr={scheduler.get_last_lr()[0]:.2e} recall@1={r1:.4f}"
        )

    accelerator.wait_for_everyone()
    accelerator.save(accelerator.unwrap_model(model).state_dict(), "embedder.pt")
    accelerator.print(f"final recall@1: {recall_at_1(model, test_loader, accelerator):.4f}")


if __name__ == "__main__":
    main()
