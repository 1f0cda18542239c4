"""Distil a wide teacher into a narrow student.

* teacher: trained first, then frozen and kept in eval mode for good
* student: gradient accumulation over 3 micro batches, the last group of an epoch may be shorter
* mixed precision when a GPU is there
"""
import copy
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
AMP = DEV.type == "cuda"
MICRO, ACCUM, TEMP, ALPHA = 32, 3, 3.0, 0.7


def dense(width, p):
    return nn.Sequential(
        nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, 10)
    ).to(DEV)


def autocast():
    return torch.autocast("cuda", dtype=torch.float16) if AMP else nullcontext()


@torch.no_grad()
def accuracy(net, loader):
    was = net.training
    net.eval()
    ok = sum((net(x.to(DEV)).argmax(1).cpu() == y).sum().item() for x, y in loader)
    net.train(was)
    return ok / len(loader.dataset)


def fit_teacher(loader, epochs=5):
    net = dense(256, 0.3)
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    net.train()
    for _ in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(net(x.to(DEV)), y.to(DEV)).backward()
            opt.step()
    return net.eval().requires_grad_(False)


def kd_sum(student_logits, teacher_logits, y):
    """Summed over the micro batch; the caller divides by the size of the whole group."""
    soft = F.kl_div(
        F.log_softmax(student_logits / TEMP, 1), F.log_softmax(teacher_logits / TEMP, 1),
        reduction="sum", log_target=True,
    ) * TEMP ** 2
    return ALPHA * soft + (1 - ALPHA) * F.cross_entropy(student_logits, y, reduction="sum")


def grouped(loader, n):
    group = []
    for batch in loader:
        group.append(batch)
        if len(group) == n:
            yield group
            group = []
    if group:
        yield group


def distil(teacher, loader, val, epochs=6):
    net = dense(12, 0.0).train()
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", enabled=AMP)
    best, best_state = 0.0, None
    for ep in range(epochs):
        for group in grouped(loader, ACCUM):
            size = sum(len(y) for _, y in group)
            opt.zero_grad(set_to_none=True)
            for x, y in group:
                x, y = x.to(DEV), y.to(DEV)
                with autocast():
                    with torch.no_grad():
                        target = teacher(x)
                    loss = kd_sum(net(x).float(), target.float(), y) / size
                scaler.scale(loss).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            scaler.step(opt)
            scaler.update()
        acc = accuracy(net, val)
        if acc > best:
            best, best_state = acc, copy.deepcopy(net.state_dict())
        print(f"epoch {ep}: student val acc {acc:.3f}")
    net.load_state_dict(best_state)
    return net


if __name__ == "__main__":
    torch.manual_seed(18)
    d = load_digits()
    x, y = torch.tensor(d.data / 16.0, dtype=torch.float32), torch.tensor(d.target)
    tr, rest = train_test_split(range(len(y)), test_size=0.4, stratify=y, random_state=18)
    va, te = train_test_split(rest, test_size=0.5, stratify=y[rest], random_state=18)
    part = lambda i: TensorDataset(x[i], y[i])
    train = DataLoader(part(tr), MICRO, shuffle=True)
    val, test = DataLoader(part(va), 256), DataLoader(part(te), 256)
    teacher = fit_teacher(train)
    print(f"teacher val acc {accuracy(teacher, val):.3f}")
    student = distil(teacher, train, val)
    print(f"test: teacher {accuracy(teacher, test):.3f} student {accuracy(student, test):.3f}")
