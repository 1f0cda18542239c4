import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from moco import MoCo

torch.manual_seed(0)
d = load_digits()
X = torch.tensor(d.images / 16.0, dtype=torch.float32).unsqueeze(1)
y = d.target
perm = torch.randperm(len(X))
tr, te = perm[:1400], perm[1400:]


def augment(x):
    big = F.pad(x, (1, 1, 1, 1))
    sy, sx = torch.randint(0, 3, (2, len(x))).tolist()
    x = torch.stack([b[:, i:i + 8, j:j + 8] for b, i, j in zip(big, sy, sx)])
    x.mul_(0.7 + 0.6 * torch.rand(len(x), 1, 1, 1)).add_(0.1 * torch.randn_like(x))
    return x


encoder = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(inplace=True), nn.Flatten(),
                        nn.Linear(512, 128), nn.ReLU(inplace=True), nn.Linear(128, 32))
model = MoCo(encoder, 32)
opt = torch.optim.SGD(model.query.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=25)


def knn():
    model.eval()
    with torch.no_grad():
        z = F.normalize(model.query(X), dim=1).numpy()
    model.train()
    return KNeighborsClassifier(5).fit(z[tr], y[tr]).score(z[te], y[te])


for epoch in range(25):
    losses = []
    for idx in tr[torch.randperm(len(tr))].split(64):
        if len(idx) < 64:
            continue        # the queue length is a multiple of 64
        logits, target = model(augment(X[idx]), augment(X[idx]))
        loss = F.cross_entropy(logits, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    sched.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} loss {sum(losses) / len(losses):.3f} knn {knn():.3f}")
