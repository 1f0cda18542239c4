import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from torch.utils.data import DataLoader, TensorDataset

import losses
from nets import student_net, teacher_net


def loaders(seed):
    d = load_digits()
    x, y = torch.tensor(d.images / 16.0, dtype=torch.float32)[:, None], torch.tensor(d.target)
    tr, te = next(StratifiedShuffleSplit(1, test_size=0.3, random_state=seed).split(np.zeros(len(y)), d.target))
    mk = lambda i, **kw: DataLoader(TensorDataset(x[i], y[i]), batch_size=64, **kw)
    return mk(tr, shuffle=True), mk(te)


def accuracy(net, dl):
    net.eval()
    with torch.no_grad():
        return np.mean(np.concatenate([(net(x).argmax(1) == y).numpy() for x, y in dl]))


def train_teacher(net, dl, epochs=3):
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    for _ in range(epochs):
        net.train()
        for x, y in dl:
            opt.zero_grad()
            losses.plain(net(x), y).backward()
            opt.step()
    return net


def distil(student, teacher, dl, epochs=8):
    teacher.eval().requires_grad_(False)
    opt = torch.optim.Adam(student.parameters(), 3e-3)
    for e in range(epochs):
        student.train()
        for x, y in dl:
            with torch.no_grad():
                t = teacher(x)
            loss, parts = losses.hinton(student(x), t, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(e, {k: round(v, 3) for k, v in parts.items()})
    return student


if __name__ == "__main__":
    torch.manual_seed(6)
    train_dl, test_dl = loaders(6)
    teacher = train_teacher(teacher_net(), train_dl)
    print("teacher", accuracy(teacher, test_dl))
    print("student", accuracy(distil(student_net(), teacher, train_dl), test_dl))
