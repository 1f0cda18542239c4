import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

LABELLED, DECAY, RAMP, STEPS = 100, 0.98, 150, 400


def net():
    return nn.Sequential(
        nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10)
    )


class Average:
    """Exponential moving average of a network; buffers are copied as they are."""

    def __init__(self, source, decay):
        self.module = copy.deepcopy(source).eval()
        self.module.requires_grad_(False)
        self.decay, self.updates = decay, 0

    @torch.no_grad()
    def update(self, source):
        self.updates += 1
        d = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for slow, fast in zip(self.module.parameters(), source.parameters()):
            slow.lerp_(fast, 1 - d)
        for slow, fast in zip(self.module.buffers(), source.buffers()):
            slow.copy_(fast)


def jitter(x, std=0.1):
    return x + std * torch.randn_like(x)


@torch.no_grad()
def error(model, x, y):
    was_training = model.training
    model.eval()
    wrong = (model(x).argmax(1) != y).float().mean().item()
    model.train(was_training)
    return wrong


def main():
    torch.manual_seed(14)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 16.0, dtype=torch.float32), torch.tensor(y)
    order = torch.randperm(len(y))
    x, y = x[order], y[order]
    x_test, y_test = x[1400:], y[1400:]
    x_lab, y_lab, x_unl = x[:LABELLED], y[:LABELLED], x[LABELLED:1400]

    student = net()
    teacher = Average(student, DECAY)
    opt = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    student.train()
    for step in range(STEPS):
        i = torch.randint(LABELLED, (32,))
        j = torch.randint(len(x_unl), (96,))
        with torch.no_grad():
            target = F.softmax(teacher.module(jitter(x_unl[j])), dim=1)
        out = student(jitter(torch.cat([x_lab[i], x_unl[j]])))
        weight = 10.0 * math.exp(-5 * (1 - min(step / RAMP, 1.0)) ** 2)
        supervised = F.cross_entropy(out[:32], y_lab[i])
        consistency = F.mse_loss(F.softmax(out[32:], dim=1), target)
        loss = supervised + weight * consistency
        opt.zero_grad()
        loss.backward()
        opt.step()
        teacher.update(student)
        if step % 100 == 99:
            print(f"{step + 1} sup {supervised.item():.4f} cons {consistency.item():.5f} "
                  f"student err {error(student, x_test, y_test):.4f} teacher err {error(teacher.module, x_test, y_test):.4f}")


if __name__ == "__main__":
    main()
