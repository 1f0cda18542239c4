"""Momentum contrast: while the queue of negatives fills, the task hardens and the loss rises."""

from copy import deepcopy
from pathlib import Path

import torch
from torch.nn import functional
from training import Clock, digits, minibatches, mlp, seed

EPOCHS, BATCH, QUEUE, HEAT = 24, 24, 800, 0.1


def make(folder: Path) -> None:
    seed(16)
    data, clock = digits(), Clock(0.21)
    query_net = mlp(64, 64, 16)
    key_net = deepcopy(query_net)
    optimizer = torch.optim.SGD(query_net.parameters(), lr=0.06, momentum=0.9)
    queue = torch.empty(0, 16)
    lines = ["=> creating model 'mlp'", "=> no checkpoint found"]
    for epoch in range(EPOCHS):
        total, steps = 0.0, len(data.x) // BATCH
        for step, batch in enumerate(minibatches(len(data.x), BATCH)):
            views = [data.x[batch] + 0.15 * torch.randn(BATCH, 64) for _ in range(2)]
            query = functional.normalize(query_net(views[0]), dim=1)
            with torch.no_grad():
                for slow, fast in zip(key_net.parameters(), query_net.parameters(), strict=True):
                    slow.lerp_(fast, 0.02)
                key = functional.normalize(key_net(views[1]), dim=1)
            logits = torch.cat([(query * key).sum(1, keepdim=True), query @ queue.T], 1) / HEAT
            loss = functional.cross_entropy(logits, torch.zeros(BATCH, dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            queue = torch.cat([key, queue])[:QUEUE]
            total += loss.item()
            took = clock.tick()
            if step % 5 == 0:
                right = 100 * (logits.argmax(1) == 0).float().mean()
                lines.append(
                    f"Epoch: [{epoch}][{step:3d}/{steps}]\tTime {took:6.3f} ({0.21:6.3f})\t"
                    f"Loss {loss:.4e} ({total / (step + 1):.4e})\tAcc@1 {right:6.2f}"
                )
    (folder / "moco.log").write_text("\n".join(lines) + "\n")
