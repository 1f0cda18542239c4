#!/usr/bin/env python
# Обучение классификатора временных рядов с Accelerate и накоплением градиентов.
import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import GradientAccumulationPlugin, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_series(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    noise = torch.randn(n, 50, generator=g)
    # три вида процессов: белый шум, AR(1) с плюсом, AR(1) с минусом
    phi = torch.tensor([0.0, 0.8, -0.8])[y]
    x = [noise[:, 0]]
    for t in range(1, 50):
        x.append(phi * x[-1] + noise[:, t])
    return TensorDataset(torch.stack(x, 1).unsqueeze(1), y)


class ConvNet(nn.Module):
    def __init__(self, ch=24):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv1d(1, ch, 5), nn.GELU(), nn.Conv1d(ch, ch, 5), nn.GELU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(ch, 3))

    def forward(self, x):
        return self.f(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulation", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--mixed_precision", default="no", choices=["no", "fp16", "bf16"])
    args = parser.parse_args()

    set_seed(55)
    plugin = GradientAccumulationPlugin(num_steps=args.accumulation)
    acc = Accelerator(mixed_precision=args.mixed_precision, gradient_accumulation_plugin=plugin,
                      cpu=not torch.cuda.is_available())
    train_dl = DataLoader(make_series(768, 1), batch_size=16, shuffle=True)
    eval_dl = DataLoader(make_series(192, 2), batch_size=64)

    model = ConvNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model, optimizer, train_dl, eval_dl = acc.prepare(model, optimizer, train_dl, eval_dl)
    updates = args.epochs * -(-len(train_dl) // args.accumulation)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.lr, total_steps=updates * acc.num_processes)
    scheduler = acc.prepare(scheduler)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        model.train()
        for x, y in train_dl:
            # внутри accumulate() шаг, обнуление и планировщик срабатывают лишь раз в N мини-пакетов,
            # а backward() сам делит потери на N
            with acc.accumulate(model):
                loss = criterion(model(x), y)
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()

        model.eval()
        correct = total = 0
        for x, y in eval_dl:
            with torch.no_grad():
                pred = model(x).argmax(-1)
            pred, y = acc.gather_for_metrics((pred, y))
            correct += (pred == y).sum().item()
            total += len(y)
        acc.print(f"эпоха {epoch}: потери {loss.item():.3f}, точность {correct / total:.3f}, lr {scheduler.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    main()
