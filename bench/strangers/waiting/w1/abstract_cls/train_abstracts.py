"""Subject classification of paper abstracts: hierarchical BERT + linear warmup/decay (own loop, no HF Trainer)."""
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, get_linear_schedule_with_warmup

EPOCHS = 6
BATCH_SIZE = 16
LR = 1e-3
WARMUP = 0.06
MAX_LEN = 32
LABELS = ["cs", "math", "physics", "bio"]


def seed_all(s):
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)


class Abstracts(Dataset):
    """Token ids as our tokenizer would produce them (pad = 0)."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(n):
            y = int(rng.integers(len(LABELS)))
            ids = rng.integers(60, 500, size=rng.integers(14, MAX_LEN + 1))
            pos = rng.choice(len(ids), 3, replace=False)
            ids[pos] = 5 + 12 * y + rng.integers(0, 12, size=3)
            self.rows.append((ids, y))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    width = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for r, (x, _) in enumerate(rows):
        ids[r, :len(x)] = torch.from_numpy(x)
        mask[r, :len(x)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([y for _, y in rows])}


def build_optimizer(model, loader):
    no_decay = ("bias", "LayerNorm.weight", "layer_norm.weight")
    named = list(model.named_parameters())
    groups = [
        {"params": [p for n, p in named if not n.endswith(no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in named if n.endswith(no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=LR)
    num_steps = len(loader)
    scheduler = get_linear_schedule_with_warmup(optimizer, int(WARMUP * num_steps), num_steps)
    return optimizer, scheduler


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hit = sum((model(**b).logits.argmax(-1) == b["labels"]).sum().item() for b in loader)
    return hit / len(loader.dataset)


def main():
    seed_all(0)
    train_dl = DataLoader(Abstracts(800, 0), BATCH_SIZE, shuffle=True, collate_fn=collate)
    dev_dl = DataLoader(Abstracts(200, 1), 100, collate_fn=collate)
    model = DistilBertForSequenceClassification(DistilBertConfig(
        vocab_size=500, dim=48, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=MAX_LEN,
        num_labels=len(LABELS)))
    optimizer, scheduler = build_optimizer(model, train_dl)

    for epoch in range(EPOCHS):
        model.train()
        losses = []
        for batch in train_dl:
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {np.mean(losses):.4f} dev acc {accuracy(model, dev_dl):.3f}")


if __name__ == "__main__":
    main()
