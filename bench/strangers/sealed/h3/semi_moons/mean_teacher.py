import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons


class WeightAverage:
    """Exponential moving average of a network, bias-corrected in the first steps."""

    def __init__(self, net, decay=0.99):
        self.net = copy.deepcopy(net).requires_grad_(False)
        self.decay, self.n = decay, 0

    @torch.no_grad()
    def update(self, source):
        self.n += 1
        d = min(self.decay, 1 - 1 / (self.n + 1))
        for mine, theirs in zip(self.net.parameters(), source.parameters()):
            mine.lerp_(theirs, 1 - d)
        for mine, theirs in zip(self.net.buffers(), source.buffers()):
            mine.copy_(theirs)

    def __call__(self, x):
        return self.net(x)


def perceptron():
    return nn.Sequential(nn.Linear(2, 48), nn.ReLU(inplace=True), nn.Dropout(0.1),
                         nn.Linear(48, 48), nn.ReLU(inplace=True), nn.Linear(48, 2))


def jitter(x, s=0.08):
    return x + s * torch.randn_like(x)


def rampup(step, length):
    t = min(step / length, 1.0)
    return math.exp(-5 * (1 - t) ** 2)


def main():
    torch.manual_seed(12)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    X, y = make_moons(1000, noise=0.1, random_state=0)
    X, y = torch.tensor(X, dtype=torch.float32, device=device), torch.tensor(y, device=device)
    few = torch.cat([(y[:600] == c).nonzero().squeeze(1)[:6] for c in (0, 1)])
    student = perceptron().to(device)
    teacher = WeightAverage(student)
    opt = torch.optim.Adam(student.parameters(), lr=5e-3)
    stream = itertools.chain.from_iterable(torch.randperm(600, device=device).split(100) for _ in itertools.count())

    for step, idx in zip(range(1, 301), stream):
        student.train()
        teacher.net.train()
        with torch.no_grad():
            aim = teacher(jitter(X[idx])).softmax(-1)
        guess = student(jitter(X[idx])).softmax(-1)
        consistency = F.mse_loss(guess, aim)
        supervised = F.cross_entropy(student(jitter(X[few])), y[few])
        loss = supervised + 8.0 * rampup(step, 150) * consistency
        opt.zero_grad()
        loss.backward()
        opt.step()
        teacher.update(student)
        if step % 75 == 0:
            scores = []
            for net in (student, teacher.net):
                net.eval()
                with torch.no_grad():
                    scores.append((net(X[600:]).argmax(1) == y[600:]).float().mean().item())
            print(f"step {step} loss {loss.item():.3f} student {scores[0]:.3f} teacher {scores[1]:.3f}")


if __name__ == "__main__":
    main()
