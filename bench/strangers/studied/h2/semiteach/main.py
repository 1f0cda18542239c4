import math

import torch
import torch.nn.functional as F
from sklearn.datasets import make_moons

from base import BaseTrainer
from student import Student


class MeanTeacher(BaseTrainer):
    def __init__(self, model, labelled, unlabelled, test, weight=4.0, **kw):
        super().__init__(model, **kw)
        self.labelled, self.unlabelled, self.test, self.weight = labelled, unlabelled, test, weight

    def batches(self):
        for idx in torch.randperm(len(self.unlabelled)).split(64):
            pick = torch.randint(len(self.labelled[0]), (16,))
            yield self.labelled[0][pick], self.labelled[1][pick], self.unlabelled[idx]

    @staticmethod
    def jitter(x):
        return x + 0.08 * torch.randn_like(x)

    def compute_loss(self, batch):
        x, y, u = batch
        supervised = F.cross_entropy(self.model(self.jitter(x)), y)
        with torch.no_grad():
            goal = F.softmax(self.model.teacher(self.jitter(u)), dim=-1)
        consistency = F.mse_loss(F.softmax(self.model(self.jitter(u)), dim=-1), goal)
        ramp = math.exp(-5 * (1 - min(1.0, self.step / 150)) ** 2)
        return supervised + ramp * self.weight * consistency

    def after_step(self):
        self.model.update_teacher(decay=min(0.98, 1 - 1 / (self.step + 1)))

    @torch.no_grad()
    def evaluate(self):
        x, y = self.test
        return {name: (net(x).argmax(1) == y).float().mean().item()
                for name, net in (("student", self.model), ("teacher", self.model.teacher))}


def main():
    torch.manual_seed(3)
    X, y = make_moons(1600, noise=0.12, random_state=0)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    few = torch.cat([(y[:1200] == c).nonzero()[:6, 0] for c in (0, 1)])
    trainer = MeanTeacher(Student(2, 2), (X[few], y[few]), X[:1200], (X[1200:], y[1200:]), lr=3e-3, epochs=15)
    trainer.fit()


if __name__ == "__main__":
    main()
