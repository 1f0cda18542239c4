# Knowledge distillation on digits: big MLP -> tiny MLP (Hinton et al. 2015, T=4)
import torch
from torch import nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(0)
T = 4.0
ALPHA = 0.7

X, y = load_digits(return_X_y=True)
X_tr, X_te, y_tr, y_te = train_test_split(X / 16.0, y, test_size=0.3, stratify=y, random_state=0)
X_tr = torch.tensor(X_tr, dtype=torch.float32)
X_te = torch.tensor(X_te, dtype=torch.float32)
y_tr, y_te = torch.tensor(y_tr), torch.tensor(y_te)


def mlp(*sizes, p=0.0):
    mods = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        mods += [nn.Linear(a, b), nn.ReLU(), nn.Dropout(p)]
    mods.append(nn.Linear(sizes[-2], sizes[-1]))
    return nn.Sequential(*mods)


def batches(bs=64):
    perm = torch.randperm(len(X_tr))
    for i in range(0, len(perm), bs):
        idx = perm[i:i + bs]
        yield X_tr[idx], y_tr[idx]


def accuracy(net):
    net.eval()
    with torch.no_grad():
        acc = (net(X_te).argmax(1) == y_te).float().mean().item()
    net.train()
    return acc


def train_teacher(epochs=15):
    net = mlp(64, 512, 512, 10, p=0.3)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(epochs):
        for xb, yb in batches():
            opt.zero_grad()
            F.cross_entropy(net(xb), yb).backward()
            opt.step()
    return net


def kd_loss(student_out, teacher_out, labels):
    soft = F.kl_div(
        student_out / T,
        F.softmax(teacher_out / T, dim=1),
        reduction="batchmean",
    ) * (T * T)
    hard = F.cross_entropy(student_out, labels)
    return ALPHA * soft + (1 - ALPHA) * hard


def train_student(teacher, epochs=20):
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad_(False)
    net = mlp(64, 16, 10)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for ep in range(epochs):
        tot = 0.0
        for xb, yb in batches():
            with torch.no_grad():
                t_out = teacher(xb)
            opt.zero_grad()
            loss = kd_loss(net(xb), t_out, yb)
            loss.backward()
            opt.step()
            tot += loss.item() * len(xb)
        if ep % 4 == 3:
            print(f"student epoch {ep + 1:2d}  loss {tot / len(X_tr):.4f}  test acc {accuracy(net):.3f}")
    return net


if __name__ == "__main__":
    teacher = train_teacher()
    print("teacher acc", accuracy(teacher))
    student = train_student(teacher)
    print("student acc", accuracy(student))
