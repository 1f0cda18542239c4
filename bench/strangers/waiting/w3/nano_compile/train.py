import argparse
import random

import torch
import torch.nn.functional as F

from model import Conf, ConvLM

ap = argparse.ArgumentParser()
ap.add_argument("--steps", type=int, default=150)
ap.add_argument("--backend", default="inductor")
ap.add_argument("--out", default="/tmp/w3_convlm.pt")
args = ap.parse_args()

torch.manual_seed(0)
rnd = random.Random(0)
names = ["".join(rnd.choice("bdgklmnrst") + rnd.choice("aeiou") for _ in range(rnd.randint(2, 4))) for _ in range(3000)]
text = "\n".join(names)
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])
cut = int(0.9 * len(ids))
train_ids, val_ids = ids[:cut], ids[cut:]

conf = Conf(vocab=len(chars))
model = torch.compile(ConvLM(conf), backend=args.backend)
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)


def batch(src, n=32):
    at = torch.randint(len(src) - conf.ctx - 1, (n,))
    win = torch.stack([src[i:i + conf.ctx + 1] for i in at])
    return win[:, :-1], win[:, 1:]


def lm_loss(x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


best = float("inf")
for step in range(1, args.steps + 1):
    loss = lm_loss(*batch(train_ids))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 50 == 0:
        with torch.no_grad():
            vl = sum(lm_loss(*batch(val_ids)).item() for _ in range(5)) / 5
        print(f"step {step} train {loss.item():.3f} val {vl:.3f}")
        if vl < best:
            best = vl
            torch.save({"conf": conf.dict(), "chars": chars, "weights": model.state_dict()}, args.out)
