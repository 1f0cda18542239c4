import copy
import math
from dataclasses import dataclass

import torch
from sklearn.datasets import make_moons
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass
class Settings:
    labelled: int = 24
    unlabelled: int = 1500
    steps: int = 500
    decay: float = 0.98
    consistency: float = 4.0
    ramp: int = 200
    lr: float = 3e-3


def student_net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(),
                         nn.Linear(64, 2))


class MeanTeacher:
    def __init__(self, student: nn.Module, decay: float) -> None:
        self.net = copy.deepcopy(student).eval().requires_grad_(False)
        self.decay = decay
        self.count = 0

    @torch.no_grad()
    def follow(self, student: nn.Module) -> None:
        self.count += 1
        keep = min(self.decay, 1 - 1 / (self.count + 1))
        theirs = student.state_dict()
        for name, mine in self.net.state_dict().items():
            if mine.dtype.is_floating_point:
                mine.mul_(keep).add_(theirs[name], alpha=1 - keep)
            else:
                mine.copy_(theirs[name])

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        return self.net(x).softmax(1)


def jitter(x: Tensor) -> Tensor:
    return x + 0.08 * torch.randn_like(x)


def main(s: Settings) -> None:
    torch.manual_seed(16)
    data, target = (torch.tensor(a) for a in make_moons(s.unlabelled + 600, noise=0.1, random_state=16))
    data = data.float()
    pool, test_x, test_y = data[: s.unlabelled], data[s.unlabelled:], target[s.unlabelled:]
    x_lab, y_lab = pool[: s.labelled], target[: s.labelled]
    student = student_net()
    teacher = MeanTeacher(student, s.decay)
    opt = torch.optim.Adam(student.parameters(), lr=s.lr)
    student.train()
    for step in range(1, s.steps + 1):
        free = pool[torch.randint(len(pool), (128,))]
        out = student(jitter(torch.cat([x_lab, free])))
        supervised = F.cross_entropy(out[: s.labelled], y_lab)
        agreement = F.mse_loss(out[s.labelled:].softmax(1), teacher(jitter(free)))
        weight = s.consistency * math.exp(-5 * (1 - min(1.0, step / s.ramp)) ** 2)
        loss = supervised + weight * agreement
        opt.zero_grad()
        loss.backward()
        opt.step()
        teacher.follow(student)
        if step % 100 == 0:
            acc = (teacher(test_x).argmax(1) == test_y).float().mean().item()
            print(f"step {step} supervised {supervised.item():.3f} agreement {agreement.item():.4f} teacher accuracy {acc:.3f}")


if __name__ == "__main__":
    main(Settings())
