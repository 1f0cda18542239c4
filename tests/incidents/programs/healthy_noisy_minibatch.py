"""Batches of two: the loss of a step jumps by a factor of a thousand and the run is fine."""

from argparse import Namespace
from pathlib import Path

import torch
from torch.nn import functional
from training import digits, evaluate, minibatches, mlp, seed


def make(folder: Path) -> None:
    args = Namespace(batch_size=2, epochs=4, lr=0.02, momentum=0.0, log_interval=12, seed=1)
    seed(args.seed)
    data, model = digits(), mlp(64, 32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    lines = [str(args)]
    for epoch in range(1, args.epochs + 1):
        for i, batch in enumerate(minibatches(len(data.x), args.batch_size)):
            loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % args.log_interval == 0:
                done = i * args.batch_size
                share = 100.0 * done / len(data.x)
                lines.append(
                    f"Train Epoch: {epoch} [{done}/{len(data.x)} ({share:.0f}%)]\tLoss: {loss:.6f}"
                )
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        right = round(accuracy * len(data.x_val))
        lines += [
            "",
            f"Test set: Average loss: {val_loss:.4f}, "
            f"Accuracy: {right}/{len(data.x_val)} ({100 * accuracy:.0f}%)",
            "",
        ]
    (folder / "stdout.txt").write_text("\n".join(lines) + "\n")
