"""Pretrain on task A (is the maximum large?), adapt with LoRA to task B (first token > last token?)."""
import torch
import torch.nn.functional as F

from backbone import SequenceModel
from lora import inject, trainable


def task_a(n, g):
    ids = torch.randint(0, 12, (n, 8), generator=g)
    return ids, (ids.max(1).values > 10).long()


def task_b(n, g):
    ids = torch.randint(0, 12, (n, 8), generator=g)
    return ids, (ids[:, 0] > ids[:, -1]).long()


def accuracy(model, data):
    with torch.no_grad():
        return (model(data[0]).argmax(1) == data[1]).float().mean().item()


def optimise(model, params, data, test, epochs, lr, tag):
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    for epoch in range(epochs):
        running = []
        for idx in torch.randperm(len(data[1])).split(64):
            loss = F.cross_entropy(model(data[0][idx]), data[1][idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            running.append(loss.item())
        print(f"{tag} {epoch}: loss {sum(running) / len(running):.4f} test {accuracy(model, test):.3f}")


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(99)
    model = SequenceModel()
    optimise(model, model.parameters(), task_a(2000, g), task_a(500, g), 3, 3e-3, "pretrain")
    for p in model.parameters():
        p.requires_grad_(False)
    inject(model, rank=4)
    params = trainable(model)
    print("adapter parameters:", sum(p.numel() for p in params))
    optimise(model, params, task_b(2000, g), task_b(500, g), 5, 1e-2, "adapt")


if __name__ == "__main__":
    main()
