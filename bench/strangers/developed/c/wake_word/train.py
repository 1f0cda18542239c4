# 웨이크워드 검출: 멜 스펙트로그램 대신 간단한 합성 특징을 사용
import argparse
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader, Subset


class SynthSpectra(Dataset):
    """(시간, 주파수) 크기의 합성 스펙트로그램. 라벨 1 = 웨이크워드 포함."""

    def __init__(self, n=400, frames=30, bins=16, seed=0):
        rng = np.random.RandomState(seed)
        self.x = rng.randn(n, frames, bins).astype(np.float32) * 0.5
        self.y = rng.randint(0, 2, n)
        for i in np.where(self.y == 1)[0]:
            s = rng.randint(0, frames - 10)
            for k in range(10):
                self.x[i, s + k, (3 + k) % bins] += 2.0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), float(self.y[i])


class WakeNet(nn.Module):
    def __init__(self, bins=16, ch=24):
        super().__init__()
        self.conv1 = nn.Conv1d(bins, ch, 5, padding=2)
        self.conv2 = nn.Conv1d(ch, ch, 5, padding=2)
        self.bn = nn.BatchNorm1d(ch)
        self.score = nn.Linear(ch, 1)
        self.attn = nn.Linear(ch, 1)

    def forward(self, x):
        B, T, F = x.shape
        # 이웃한 두 프레임을 평균한 뒤 주파수별 정규화 (발화 단위)
        x = x[:, :T - T % 2].reshape(B, T // 2, 2, F).mean(2)
        x = (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-5)
        h = F.relu(self.conv1(x.transpose(1, 2)))
        h = F.relu(self.bn(self.conv2(h))).transpose(1, 2)
        w = torch.softmax(self.attn(h), dim=1)
        return (w * self.score(h)).sum(1).squeeze(-1)


def evaluate(net, loader):
    net.eval()
    hits, n = 0, 0
    with torch.no_grad():
        for x, y in loader:
            hits += ((net(x) > 0).float() == y).sum().item()
            n += len(y)
    return hits / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--bs", type=int, default=32)
    args = ap.parse_args()
    torch.manual_seed(0)

    full = SynthSpectra()
    order = torch.randperm(len(full)).tolist()
    train_loader = DataLoader(Subset(full, order[:320]), args.bs, shuffle=True)
    test_loader = DataLoader(Subset(full, order[320:]), 80)

    net = WakeNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for ep in range(args.epochs):
        net.train()
        for x, y in train_loader:
            y = y.float()
            loss = F.binary_cross_entropy_with_logits(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"에폭 {ep}: 정확도 {evaluate(net, test_loader):.3f}")


if __name__ == "__main__":
    main()
