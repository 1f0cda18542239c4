"""Bagged ensemble of MLPs, all members trained at once with torch.func; no optimizer objects."""
import copy
import math

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

M, BATCH, STEPS, LR, MU, WD = 8, 32, 200, 0.1, 0.9, 1e-4
torch.manual_seed(5)

raw = load_breast_cancer()
xa, xb, ya, yb = train_test_split(raw.data, raw.target, test_size=0.3, stratify=raw.target, random_state=5)
mean, std = xa.mean(0), xa.std(0)
xa, xb = (torch.tensor((v - mean) / std, dtype=torch.float32) for v in (xa, xb))
ya, yb = (torch.tensor(v, dtype=torch.float32) for v in (ya, yb))


def member():
    return nn.Sequential(nn.Linear(30, 24), nn.Tanh(), nn.Linear(24, 1))


members = [member() for _ in range(M)]
params, buffers = stack_module_state(members)
params = {k: v.detach() for k, v in params.items()}
skeleton = copy.deepcopy(members[0]).to("meta")


def logit(p, b, x):
    return functional_call(skeleton, (p, b), (x,)).squeeze(-1)


def objective(p, b, x, y):
    return nn.functional.binary_cross_entropy_with_logits(logit(p, b, x), y)


step_grads = vmap(grad_and_value(objective), in_dims=(0, 0, 0, 0))
predict = vmap(logit, in_dims=(0, 0, None))

bags = torch.randint(len(xa), (M, len(xa)))
velocity = {k: torch.zeros_like(v) for k, v in params.items()}
for step in range(STEPS):
    lr = LR * 0.5 * (1 + math.cos(math.pi * step / STEPS))
    pick = torch.gather(bags, 1, torch.randint(len(xa), (M, BATCH)))
    grads, losses = step_grads(params, buffers, xa[pick], ya[pick])
    velocity = {k: MU * velocity[k] + grads[k] + WD * params[k] for k in params}
    params = {k: params[k] - lr * velocity[k] for k in params}
    if step % 50 == 0:
        print(f"step {step:3d} mean loss {losses.mean():.4f} spread {losses.std():.4f}")

prob = predict(params, buffers, xb).sigmoid().mean(0)
print("ensemble accuracy", ((prob > 0.5).float() == yb).float().mean().item())
