import math
import os
import random
import time
from pathlib import Path

import numpy as np
import torch
from model import GPT, GPTConfig

# -----------------------------------------------------------------------------
out_dir = Path("out")
eval_interval = 50
eval_iters = 5
log_interval = 10
batch_size = 16
block_size = 32
max_iters = 200
learning_rate = 3e-3
min_lr = 3e-4
warmup_iters = 20
weight_decay = 0.1
grad_clip = 1.0
seed = int(os.environ.get("SEED", "0"))
# -----------------------------------------------------------------------------

random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)
out_dir.mkdir(exist_ok=True)


def make_text(n_sentences):
    names = ["anna", "boris", "clara", "dmitri", "elena"]
    verbs = ["sees", "hears", "follows", "paints", "feeds"]
    things = ["the old horse", "a red bird", "the quiet river", "a small dog"]
    places = ["by the gate", "in the garden", "at night", "near the mill"]
    rng = random.Random(1337 + seed)
    sentences = []
    for _ in range(n_sentences):
        words = [rng.choice(names), rng.choice(verbs), rng.choice(things), rng.choice(places)]
        sentences.append(" ".join(words) + ".\n")
    return "".join(sentences)


text = make_text(2000)
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
n = int(0.9 * len(data))
train_data, val_data = data[:n], data[n:]


def get_batch(split):
    source = train_data if split == "train" else val_data
    ix = torch.randint(len(source) - block_size, (batch_size,))
    x = torch.stack([source[i : i + block_size] for i in ix])
    y = torch.stack([source[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


model = GPT(GPTConfig(vocab_size=len(chars), block_size=block_size))
print(f"number of parameters: {sum(p.numel() for p in model.parameters()) / 1e3:.2f}K")

decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}],
    lr=learning_rate,
    betas=(0.9, 0.99),
)
ctx = torch.amp.autocast(device_type="cpu", dtype=torch.bfloat16)


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ["train", "val"]:
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            X, Y = get_batch(split)
            with ctx:
                _, loss = model(X, Y)
            losses[k] = loss.item()
        out[split] = losses.mean()
    model.train()
    return out


best_val_loss = 1e9
t0 = time.time()
for iter_num in range(max_iters + 1):
    lr = get_lr(iter_num)
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr

    if iter_num % eval_interval == 0:
        losses = estimate_loss()
        print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
        if losses["val"] < best_val_loss:
            best_val_loss = losses["val"]
            if iter_num > 0:
                checkpoint = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "iter_num": iter_num,
                    "best_val_loss": best_val_loss,
                }
                torch.save(checkpoint, out_dir / "ckpt.pt")

    X, Y = get_batch("train")
    with ctx:
        logits, loss = model(X, Y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

    dt, t0 = time.time() - t0, time.time()
    if iter_num % log_interval == 0:
        print(f"iter {iter_num}: loss {loss.item():.4f}, time {dt * 1000:.2f}ms")
