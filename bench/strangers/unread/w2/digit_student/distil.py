"""Knowledge distillation: wide teacher, tiny student, plus a hint loss through a linear adapter."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(11)
data = load_digits()
X = torch.tensor(data.data / 16.0, dtype=torch.float32)
Y = torch.tensor(data.target)
perm = torch.randperm(len(Y))
tr, va = perm[:1300], perm[1300:]


class MLP(nn.Module):
    def __init__(self, width, p):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p))
        self.out = nn.Linear(width, 10)

    def forward(self, x, features=False):
        h = self.hidden(x)
        return (self.out(h), h) if features else self.out(h)


def batches(size):
    for idx in tr[torch.randperm(len(tr))].split(size):
        yield X[idx], Y[idx]


def score(net):
    was = net.training
    net.eval()
    with torch.no_grad():
        value = (net(X[va]).argmax(1) == Y[va]).float().mean().item()
    net.train(was)
    return value


teacher = MLP(256, 0.3)
opt_t = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for epoch in range(5):
    teacher.train()
    for x, y in batches(50):
        opt_t.zero_grad()
        F.cross_entropy(teacher(x), y).backward()
        opt_t.step()
print(f"teacher {score(teacher):.3f}")

teacher.eval().requires_grad_(False)
student = MLP(12, 0.0)
adapter = nn.Linear(12, 256)
opt_s = torch.optim.Adam([*student.parameters(), *adapter.parameters()], lr=5e-3)
T, ALPHA, GAMMA = 3.0, 0.7, 0.05

student.train()
for epoch in range(8):
    for x, y in batches(50):
        with torch.no_grad():
            soft, hint = teacher(x, features=True)
        logits, feat = student(x, features=True)
        kd = F.kl_div(F.log_softmax(logits / T, -1), F.log_softmax(soft / T, -1),
                      log_target=True, reduction="batchmean") * T * T
        loss = ALPHA * kd + (1 - ALPHA) * F.cross_entropy(logits, y) + GAMMA * F.mse_loss(adapter(feat), hint)
        opt_s.zero_grad()
        loss.backward()
        opt_s.step()
    print(f"epoch {epoch} loss {loss.item():.3f} student {score(student):.3f}")
