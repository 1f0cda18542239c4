import math

import torch

from gpt import GPT

CTX, BS, STEPS, WARM, LR = 64, 16, 200, 20, 2e-3

torch.manual_seed(0)
corpus = ("".join(f"{a}+{b}={a + b};" for a in range(60) for b in range(60))).encode()
data = torch.tensor(list(corpus))
split = int(len(data) * 0.9)
train, val = data[:split], data[split:]


def get_batch(src):
    i = torch.randint(len(src) - CTX - 1, (BS,))
    x = torch.stack([src[j:j + CTX] for j in i])
    y = torch.stack([src[j + 1:j + 1 + CTX] for j in i])
    return x, y


@torch.no_grad()
def estimate(model, n=10):
    model.eval()
    v = sum(model(*get_batch(val))[1].item() for _ in range(n)) / n
    model.train()
    return v


model = GPT(128)
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                        lr=LR, betas=(0.9, 0.95))
sched = torch.optim.lr_scheduler.LambdaLR(
    opt, lambda s: (s + 1) / WARM if s < WARM else 0.1 + 0.45 * (1 + math.cos(math.pi * (s - WARM) / (STEPS - WARM))))

for step in range(STEPS):
    _, loss = model(*get_batch(train))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    if step % 50 == 0 or step == STEPS - 1:
        print(f"step {step} train {loss.item():.3f} val {estimate(model):.3f}")
