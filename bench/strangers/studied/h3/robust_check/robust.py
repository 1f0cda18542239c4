# adversarial training on digits + robust accuracy on the validation split
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
EPS, ALPHA, ITERS = 0.1, 0.04, 4

images, labels = load_digits(return_X_y=True)
images = torch.tensor(images / 16, dtype=torch.float32, device=device)
labels = torch.tensor(labels, device=device)
perm = torch.randperm(len(images), device=device)
tr, va = perm[:1300], perm[1300:]


class Attack:
    """Projected gradient ascent on the input."""

    def __init__(self, model, eps, alpha, iters):
        self.model, self.eps, self.alpha, self.iters = model, eps, alpha, iters

    def __call__(self, x, y):
        delta = torch.empty_like(x).uniform_(-self.eps, self.eps)
        for _ in range(self.iters):
            delta.requires_grad_(True)
            loss = F.cross_entropy(self.model(x + delta), y)
            g, = torch.autograd.grad(loss, delta)
            delta = (delta.detach() + self.alpha * g.sign()).clamp(-self.eps, self.eps)
        return (x + delta).clamp(0, 1).detach()


def validate(model, attack):
    model.eval()
    clean = robust = 0
    with torch.enable_grad():
        for idx in va.split(250):
            x, y = images[idx], labels[idx]
            x_adv = attack(x, y)
            with torch.no_grad():
                clean += (model(x).argmax(1) == y).sum().item()
                robust += (model(x_adv).argmax(1) == y).sum().item()
    return clean / len(va), robust / len(va)


def main(adversarial):
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    attack = Attack(model, EPS, ALPHA, ITERS)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(5):
        for idx in tr[torch.randperm(len(tr), device=device)].split(65):
            x, y = images[idx], labels[idx]
            if adversarial:
                model.eval()
                x = attack(x, y)
            model.train()
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    return validate(model, attack)


for flag in (False, True):
    c, r = main(flag)
    print(f"adversarial={flag}: clean {c:.3f} robust {r:.3f}")
