"""
Knowledge distillation (Hinton 2015): the teacher is trained first, then a small student imitates it.
Mixed precision on both, works on CPU too.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split

DEV = "cuda" if torch.cuda.is_available() else "cpu"
TEMP, ALPHA = 4.0, 0.7
scaler = torch.amp.GradScaler(DEV)


def amp():
    return torch.autocast(DEV, dtype=torch.float16)


def make_loaders(bs=64):
    d = load_digits()
    ds = TensorDataset(torch.tensor(d.images / 16, dtype=torch.float32).unsqueeze(1), torch.tensor(d.target))
    tr, te = random_split(ds, [1437, 360], generator=torch.Generator().manual_seed(1))
    return DataLoader(tr, bs, shuffle=True), DataLoader(te, 360)


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                               nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x):
        return self.f(x)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Flatten(), nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))

    def forward(self, x):
        return self.f(x)


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    ok = sum((net(x.to(DEV)).argmax(1) == y.to(DEV)).sum().item() for x, y in loader)
    return ok / len(loader.dataset)


def train_teacher(loader, epochs=3):
    net = Teacher().to(DEV)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(epochs):
        net.train()
        for x, y in loader:
            x, y = x.to(DEV), y.to(DEV)
            opt.zero_grad()
            with amp():
                loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
    return net.eval().requires_grad_(False)


def kd_loss(student_logits, teacher_logits, y):
    soft = F.kl_div(F.log_softmax(student_logits / TEMP, 1), F.softmax(teacher_logits / TEMP, 1),
                    reduction="batchmean") * TEMP ** 2
    return ALPHA * soft + (1 - ALPHA) * F.cross_entropy(student_logits, y)


def distill(teacher, loader, test, epochs=15):
    net = Student().to(DEV)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        net.train()
        for x, y in loader:
            x, y = x.to(DEV), y.to(DEV)
            with torch.no_grad(), amp():
                t = teacher(x).float()
            with amp():
                s = net(x)
            loss = kd_loss(s.float(), t, y)
            opt.zero_grad()
            loss.backward()
            scaler.step(opt)
            scaler.update()
        if epoch % 5 == 4:
            print(f"student epoch {epoch + 1}: loss {loss.item():.3f} acc {accuracy(net, test):.4f}")
    return net


if __name__ == "__main__":
    torch.manual_seed(0)
    train, test = make_loaders()
    teacher = train_teacher(train)
    print(f"teacher acc {accuracy(teacher, test):.4f}")
    distill(teacher, train, test)
