"""Masked token pre-training of a very small BERT on a synthetic language.

The "language" is a noisy cycle over the words, so a masked word can be read off
its neighbours. Everything fits on a laptop CPU.
"""
import os

import numpy as np
import torch
import torch.nn.functional as F
import yaml
from torch.utils.data import DataLoader, Dataset

from modeling import MiniBert

PAD, MASK, CLS, N_SPECIAL = 0, 1, 2, 3
IGNORE = -100

seed = int(os.environ.get("SEED", "0"))
torch.manual_seed(seed)
np.random.seed(seed)

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "config.yaml")) as f:
    cfg = yaml.safe_load(f)
dc, mc, tc = cfg["data"], cfg["model"], cfg["train"]
vocab_size = dc["vocab_words"] + N_SPECIAL


class SyntheticLanguage(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        V = dc["vocab_words"]
        # the grammar is the same for every split
        order = np.random.default_rng(77).permutation(V)
        successor = np.empty(V, dtype=np.int64)
        successor[order] = np.roll(order, -1)
        self.sequences = []
        for _ in range(n):
            length = rng.integers(dc["min_len"], dc["max_len"])
            words = [int(rng.integers(V))]
            while len(words) < length:
                words.append(int(successor[words[-1]]) if rng.random() < 0.93 else int(rng.integers(V)))
            self.sequences.append(torch.tensor([CLS] + [w + N_SPECIAL for w in words]))

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, i):
        return self.sequences[i]


def collate(batch, generator=None):
    """Pad, then mask as in the paper: 80 % [MASK], 10 % random word, 10 % kept."""
    ids = torch.nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=PAD)
    labels = ids.clone()
    chosen = (torch.rand(ids.shape, generator=generator) < dc["mask_prob"]) & (ids >= N_SPECIAL)
    labels[~chosen] = IGNORE
    r = torch.rand(ids.shape, generator=generator)
    ids = torch.where(chosen & (r < 0.8), torch.tensor(MASK), ids)
    rand_words = torch.randint(N_SPECIAL, vocab_size, ids.shape, generator=generator)
    ids = torch.where(chosen & (r >= 0.9), rand_words, ids)
    return ids, labels


def forever(loader):
    while True:
        yield from loader


@torch.no_grad()
def validate(model, batches):
    model.eval()
    nll = hits = count = 0
    for ids, labels in batches:
        logits = model(ids)
        keep = labels != IGNORE
        nll += F.cross_entropy(logits[keep], labels[keep], reduction="sum").item()
        hits += (logits[keep].argmax(-1) == labels[keep]).sum().item()
        count += keep.sum().item()
    model.train()
    return nll / count, hits / count


train_loader = DataLoader(SyntheticLanguage(dc["train_sequences"], seed=1), batch_size=tc["micro_batch"],
                          shuffle=True, collate_fn=collate, drop_last=True)
# validation masks are drawn once so that the numbers can be compared between evaluations
g = torch.Generator().manual_seed(5)
valid_batches = list(DataLoader(SyntheticLanguage(dc["valid_sequences"], seed=2), batch_size=128,
                                collate_fn=lambda b: collate(b, g)))

model = MiniBert(vocab_size, dc["max_len"] + 1, pad_id=PAD, **mc)
print(f"{sum(p.numel() for p in model.parameters()) / 1e3:.1f}k parameters, vocab {vocab_size}")

def no_decay(name, p):
    return p.ndim < 2 or name.endswith("rel_bias")


decay = [p for n, p in model.named_parameters() if not no_decay(n, p)]
rest = [p for n, p in model.named_parameters() if no_decay(n, p)]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": tc["weight_decay"]},
                               {"params": rest, "weight_decay": 0.0}], lr=tc["lr"], betas=(0.9, 0.98))


def lr_lambda(update):
    if update < tc["warmup_updates"]:
        return (update + 1) / tc["warmup_updates"]
    return max(0.0, (tc["updates"] - update) / (tc["updates"] - tc["warmup_updates"]))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)

model.train()
stream = forever(train_loader)
running = 0.0
for update in range(1, tc["updates"] + 1):
    optimizer.zero_grad()
    for _ in range(tc["accumulation"]):
        ids, labels = next(stream)
        logits = model(ids)
        loss = F.cross_entropy(logits.view(-1, vocab_size), labels.view(-1), ignore_index=IGNORE)
        (loss / tc["accumulation"]).backward()
        running += loss.item() / tc["accumulation"]
    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), tc["max_grad_norm"])
    optimizer.step()
    scheduler.step()

    if update % tc["log_every"] == 0:
        val_loss, val_acc = validate(model, valid_batches)
        print(f"update {update:4d} | mlm loss {running / tc['log_every']:.4f} | val loss {val_loss:.4f} "
              f"| val acc {val_acc:.4f} | gnorm {float(grad_norm):.2f} | lr {scheduler.get_last_lr()[0]:.2e}")
        running = 0.0

torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "update": update,
            "config": cfg}, "mini_bert.pt")
val_loss, val_acc = validate(model, valid_batches)
print(f"masked accuracy: {val_acc:.4f}  perplexity: {np.exp(val_loss):.3f}")
