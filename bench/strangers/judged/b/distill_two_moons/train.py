#!/usr/bin/env python
# coding: utf-8
# In[1]: a wide teacher, then a narrow student that only sees soft targets + 10 % of the labels

import copy
import torch
from torch import nn
import torch.nn.functional as F
from sklearn.datasets import make_moons

torch.manual_seed(101)
X, y = map(torch.as_tensor, make_moons(1400, noise=0.25, random_state=5))
X = X.float()
perm = torch.randperm(len(X))
tr, va, te = perm[:900], perm[900:1150], perm[1150:]
has_label = torch.zeros(len(X), dtype=torch.bool)
has_label[tr[:90]] = True          # the student may use only these labels


# In[2]:
def net(width, p):
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, width), nn.ReLU(),
                         nn.Dropout(p), nn.Linear(width, 2))


def acc(m, rows):
    was = m.training
    m.eval()
    with torch.no_grad():
        a = (m(X[rows]).argmax(1) == y[rows]).float().mean().item()
    m.train(was)
    return a


# In[3]: teacher, best epoch on the validation rows
teacher = net(128, 0.2)
opt = torch.optim.Adam(teacher.parameters(), 3e-3)
best, best_acc = None, -1.0
for epoch in range(20):
    for rows in tr[torch.randperm(len(tr))].split(64):
        opt.zero_grad()
        F.cross_entropy(teacher(X[rows]), y[rows]).backward()
        opt.step()
    a = acc(teacher, va)
    if a > best_acc:
        best, best_acc = copy.deepcopy(teacher.state_dict()), a
teacher.load_state_dict(best)
teacher.eval().requires_grad_(False)
print(f"teacher: val {best_acc:.3f} test {acc(teacher, te):.3f}")


# In[4]: student
def distill(T, alpha, epochs=20):
    torch.manual_seed(7)
    student = net(8, 0.0)
    opt = torch.optim.Adam(student.parameters(), 1e-2)
    for _ in range(epochs):
        for rows in tr[torch.randperm(len(tr))].split(64):
            z = student(X[rows])
            with torch.no_grad():
                soft = F.log_softmax(teacher(X[rows]) / T, 1)
            kd = F.kl_div(F.log_softmax(z / T, 1), soft, log_target=True, reduction="batchmean") * T * T
            m = has_label[rows]
            # a batch may hold no labelled row at all
            hard = F.cross_entropy(z[m], y[rows][m]) if m.any() else z.new_zeros(())
            loss = alpha * kd + (1 - alpha) * hard
            opt.zero_grad()
            loss.backward()
            opt.step()
    return student


# In[5]: temperature picked on validation, test looked at once
runs = {T: distill(T, 0.8) for T in (1.0, 2.0, 4.0)}
for T, s in runs.items():
    print(f"T={T}: val {acc(s, va):.3f}")
pick = max(runs, key=lambda T: acc(runs[T], va))
print(f"student with T={pick}: test {acc(runs[pick], te):.3f}")
