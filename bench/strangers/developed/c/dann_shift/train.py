# 域适应 (DANN)：源域为原始数字，目标域为低对比度加噪声的数字，目标域训练时不使用标签
import math
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits


class GradReverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.lam * g, None


class DANN(nn.Module):
    def __init__(self, feat=64):
        super().__init__()
        self.feature = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, feat), nn.ReLU(),
        )
        self.label = nn.Linear(feat, 10)
        self.domain = nn.Sequential(nn.Linear(feat, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, lam=None):
        z = self.feature(x)
        if lam is None:
            return self.label(z)
        return self.label(z), self.domain(GradReverse.apply(z, lam)).squeeze(1)


def build_domains(seed=0):
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(d.target)
    p = torch.from_numpy(np.random.RandomState(seed).permutation(len(x)))
    s, t, test = p[:700], p[700:1400], p[1400:]
    g = torch.Generator().manual_seed(seed)
    shift = lambda a: (0.35 + 0.5 * a + 0.15 * torch.randn(a.shape, generator=g)).clamp(0, 1)
    return TensorDataset(x[s], y[s]), TensorDataset(shift(x[t])), TensorDataset(shift(x[test]), y[test])


torch.manual_seed(0)
source, target, target_test = build_domains()
src_loader = DataLoader(source, 64, shuffle=True, drop_last=True)
tgt_loader = DataLoader(target, 64, shuffle=True, drop_last=True)
net = DANN()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
ce, bce = nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss()

EPOCHS = 12
total = EPOCHS * min(len(src_loader), len(tgt_loader))
step = 0
for epoch in range(EPOCHS):
    net.train()
    for (xs, ys), (xt,) in zip(src_loader, tgt_loader):
        lam = 0.3 * (2 / (1 + math.exp(-10 * step / total)) - 1)   # 逐渐增强对抗强度
        logits, ds = net(xs, lam)
        _, dt = net(xt, lam)
        loss = ce(logits, ys) + bce(ds, torch.zeros_like(ds)) + bce(dt, torch.ones_like(dt))
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
    if epoch % 4 == 3:
        net.eval()
        with torch.no_grad():
            x, y = target_test.tensors
            acc = (net(x).argmax(1) == y).float().mean().item()
        print(f"第{epoch + 1}轮 目标域测试准确率 {acc:.3f}")
