"""Distillation where the student carries its teacher around (so that one object is shipped to the workers)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def convnet(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * width * 4, 10),
    )


class DistilledStudent(nn.Module):
    def __init__(self, student, teacher, temperature=3.0, alpha=0.5):
        super().__init__()
        self.student = student
        # in a list: must not show up in parameters() or state_dict()
        self._teacher = [teacher.eval().requires_grad_(False)]
        self.t = temperature
        self.alpha = alpha

    @property
    def teacher(self):
        return self._teacher[0]

    def forward(self, x):
        return self.student(x)

    def loss(self, x, y):
        s = self.student(x)
        with torch.no_grad():
            t = self.teacher(x)
        soft = F.kl_div(F.log_softmax(s / self.t, 1), F.log_softmax(t / self.t, 1),
                        reduction="batchmean", log_target=True) * self.t ** 2
        return self.alpha * soft + (1 - self.alpha) * F.cross_entropy(s, y)


def fit(params, loss_fn, X, y, epochs, lr):
    opt = torch.optim.Adam(params, lr=lr)
    for _ in range(epochs):
        for idx in torch.randperm(len(X)).split(64):
            opt.zero_grad()
            loss = loss_fn(X[idx], y[idx])
            loss.backward()
            opt.step()
    return loss.item()


@torch.inference_mode()
def score(net, X, y):
    return (net(X).argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    d = load_digits()
    Xa, Xb, ya, yb = train_test_split(d.images, d.target, test_size=0.3, random_state=0, stratify=d.target)
    Xa, Xb = (torch.tensor(v, dtype=torch.float32).unsqueeze(1) / 16 for v in (Xa, Xb))
    ya, yb = torch.from_numpy(ya), torch.from_numpy(yb)

    teacher = convnet(24)
    fit(teacher.parameters(), lambda x, y: F.cross_entropy(teacher(x), y), Xa, ya, 8, 2e-3)
    print("teacher", score(teacher, Xb, yb))

    kd = DistilledStudent(convnet(4), teacher)
    assert not any(k.startswith("_teacher") for k in kd.state_dict())
    for r in range(4):
        last = fit(kd.parameters(), kd.loss, Xa, ya, 4, 3e-3)
        print(f"round {r} loss {last:.3f} student {score(kd, Xb, yb):.3f}")
