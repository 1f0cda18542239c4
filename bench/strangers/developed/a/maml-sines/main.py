"""Second-order MAML on the sine family, with torch.func and plain dictionaries of weights."""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


@dataclass
class H:
    inner_lr: float = 0.02
    inner_steps: int = 2
    outer_lr: float = 2e-3
    meta_batch: int = 4
    shots: int = 10
    iters: int = 250


class Task:
    def __init__(self, gen):
        self.gen = gen
        u = torch.rand(2, generator=gen)
        self.amp, self.phase = 0.5 + 3.5 * u[0], math.pi * u[1]

    def draw(self, n):
        x = 10 * torch.rand(n, 1, generator=self.gen) - 5
        return x, self.amp * torch.sin(x + self.phase)


def adapt(net, weights, x, y, h, create_graph):
    fast = dict(weights)
    for _ in range(h.inner_steps):
        loss = F.mse_loss(functional_call(net, fast, (x,)), y)
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=create_graph)
        fast = {k: w - h.inner_lr * g for (k, w), g in zip(fast.items(), grads)}
    return fast


def evaluate(net, h, seed, n_tasks=40):
    gen = torch.Generator().manual_seed(seed)
    before = after = 0.0
    weights = {k: p.detach().clone().requires_grad_(True) for k, p in net.named_parameters()}
    for _ in range(n_tasks):
        task = Task(gen)
        support, query = task.draw(h.shots), task.draw(50)
        # adapting at test time needs gradients as well, only the scoring does not
        fast = adapt(net, weights, *support, h, create_graph=False)
        with torch.no_grad():
            before += F.mse_loss(functional_call(net, weights, (query[0],)), query[1]).item()
            after += F.mse_loss(functional_call(net, fast, (query[0],)), query[1]).item()
    return before / n_tasks, after / n_tasks


def main():
    h = H()
    torch.manual_seed(100)
    gen = torch.Generator().manual_seed(100)
    net = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
    meta = torch.optim.Adam(net.parameters(), lr=h.outer_lr)
    for it in range(1, h.iters + 1):
        meta.zero_grad()
        for _ in range(h.meta_batch):
            task = Task(gen)
            fast = adapt(net, dict(net.named_parameters()), *task.draw(h.shots), h, create_graph=True)
            xq, yq = task.draw(h.shots)
            outer = F.mse_loss(functional_call(net, fast, (xq,)), yq) / h.meta_batch
            outer.backward()
        meta.step()
        if it % 50 == 0:
            b, a = evaluate(net, h, seed=9)
            print(f"{it}: mse before adaptation {b:.3f}, after {h.inner_steps} steps {a:.3f}")


if __name__ == "__main__":
    main()
