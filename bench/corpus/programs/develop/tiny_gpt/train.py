"""Train a tiny GPT on additions written out digit by digit."""

import json
import math
import os

import torch
from model import GPT, GPTConfig
from torch.nn import functional as F

config = {
    "max_iters": 240,
    "eval_interval": 40,
    "batch_size": 32,
    "block_size": 32,
    "learning_rate": 4e-3,
    "warmup_iters": 20,
    "weight_decay": 0.01,
    "grad_clip": 1.0,
}
torch.manual_seed(int(os.environ.get("SEED", "0")))

CHARS = "0123456789+=;"
stoi = {c: i for i, c in enumerate(CHARS)}


def additions(n):
    a = torch.randint(0, 5, (n,)).tolist()
    b = torch.randint(0, 5, (n,)).tolist()
    return "".join(f"{x}+{y}={x + y};" for x, y in zip(a, b, strict=True))


train_ids = torch.tensor([stoi[c] for c in additions(6000)])
val_ids = torch.tensor([stoi[c] for c in additions(800)])


def get_batch(split):
    data = train_ids if split == "train" else val_ids
    ix = torch.randint(len(data) - config["block_size"] - 1, (config["batch_size"],))
    x = torch.stack([data[i : i + config["block_size"]] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + config["block_size"]] for i in ix])
    return x, y


def get_lr(it):
    if it < config["warmup_iters"]:
        return (it + 1) / config["warmup_iters"]
    ratio = (it - config["warmup_iters"]) / (config["max_iters"] - config["warmup_iters"])
    return 0.1 + 0.9 * 0.5 * (1.0 + math.cos(math.pi * ratio))


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    losses = torch.zeros(8)
    for k in range(8):
        x, y = get_batch("val")
        logits = model(x)
        losses[k] = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))
    model.train()
    return losses.mean().item()


model = GPT(GPTConfig(vocab_size=len(CHARS), block_size=config["block_size"]))
optimizer = torch.optim.AdamW(
    model.parameters(),
    lr=config["learning_rate"],
    betas=(0.9, 0.95),
    weight_decay=config["weight_decay"],
)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, get_lr)
print(json.dumps({"event": "start", **config}))
model.train()
for it in range(config["max_iters"]):
    x, y = get_batch("train")
    logits = model(x)
    loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config["grad_clip"])
    optimizer.step()
    scheduler.step()
    if it % 10 == 0:
        lr = optimizer.param_groups[0]["lr"]
        print(json.dumps({"iter": it, "loss": loss.item(), "grad_norm": norm.item(), "lr": lr}))
    if (it + 1) % config["eval_interval"] == 0:
        print(json.dumps({"iter": it, "val_loss": estimate_loss(model)}))
out = model.generate(torch.tensor([[stoi[";"]]]), 30)[0].tolist()
print(json.dumps({"sample": "".join(CHARS[i] for i in out)}))
torch.save({"model": model.state_dict(), "config": config, "iter": it}, "ckpt.pt")
