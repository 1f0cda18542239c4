import math

import torch
import torch.nn.functional as F
from sklearn.datasets import make_moons

from models import Teacher, mlp

LABELLED = 24
EPOCHS = 40


def ramp(epoch, length=15):
    t = min(1.0, epoch / length)
    return math.exp(-5 * (1 - t) ** 2) if epoch else 0.0


def noisy(x, sigma=0.2):
    return x + sigma * torch.randn_like(x)


def main():
    torch.manual_seed(3)
    x, y = make_moons(1100, noise=0.12, random_state=0)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    x_lab, y_lab, x_unl = x[:LABELLED], y[:LABELLED], x[:800]
    x_test, y_test = x[800:], y[800:]
    student = mlp()
    teacher = Teacher(student)
    teacher.train()
    opt = torch.optim.Adam(student.parameters(), lr=5e-3)
    step = 0
    for epoch in range(EPOCHS):
        student.train()
        for idx in torch.randperm(len(x_unl)).split(100):
            u = x_unl[idx]
            target = teacher(noisy(u)).softmax(-1)
            consistency = F.mse_loss(student(noisy(u)).softmax(-1), target)
            supervised = F.cross_entropy(student(noisy(x_lab)), y_lab)
            loss = supervised + 8.0 * ramp(epoch) * consistency
            opt.zero_grad()
            loss.backward()
            opt.step()
            teacher.follow(student, step)
            step += 1
        if epoch % 8 == 7:
            student.eval()
            teacher.eval()
            with torch.no_grad():
                s = (student(x_test).argmax(1) == y_test).float().mean().item()
                t = (teacher(x_test).argmax(1) == y_test).float().mean().item()
            teacher.train()
            print(f"epoch {epoch + 1}: sup {supervised.item():.3f} cons {consistency.item():.5f} "
                  f"student {s:.3f} teacher {t:.3f}")


if __name__ == "__main__":
    main()
