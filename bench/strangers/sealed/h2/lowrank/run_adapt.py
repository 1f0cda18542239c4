import torch
from torch import nn
from torch.nn.functional import cross_entropy

from adapt.lora import inject, merge_all
from adapt.tasks import teacher_task


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def train(model, x, y, epochs, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.Adam(params, lr=lr)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            loss = cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            opt.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 5))
    x, y = teacher_task(3000, 1)
    train(model, x, y, epochs=12, lr=2e-3)
    print(f"source task {accuracy(model, *teacher_task(800, 2)):.3f}")

    xs, ys = teacher_task(1500, 3, shift=1.5)
    test = teacher_task(800, 4, shift=1.5)
    print(f"new task, unchanged model {accuracy(model, *test):.3f}")
    inject(model, rank=4, alpha=8)
    n_train = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"adapting {n_train} of {sum(p.numel() for p in model.parameters())} parameters")
    train(model, xs, ys, epochs=15, lr=4e-3)
    adapted = model(test[0])
    print(f"new task, adapted {accuracy(model, *test):.3f}")
    merged = merge_all(model)
    print(f"merged, max difference {(merged(test[0]) - adapted).abs().max().item():.1e}")


if __name__ == "__main__":
    main()
