# 多变量时间序列预测（合成传感器数据），使用 Accelerate
import math

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset

EPOCHS = 12
CONTEXT, HORIZON, CHANNELS = 32, 4, 3


class SensorWindows(Dataset):
    def __init__(self, start, end, seed=0):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(2000).float()
        base = [torch.sin(t / p) + 0.5 * torch.cos(t / (2.7 * p)) for p in (5.0, 9.0, 14.0)]
        self.series = torch.stack(base, -1) + 0.1 * torch.randn(2000, CHANNELS, generator=g)
        self.start, self.end = start, end          # 训练段与测试段按时间切开

    def __len__(self):
        return self.end - self.start - CONTEXT - HORIZON + 1

    def __getitem__(self, i):
        s = self.start + i
        return self.series[s:s + CONTEXT], self.series[s + CONTEXT:s + CONTEXT + HORIZON]


class Forecaster(nn.Module):
    """因果卷积 + 线性输出"""

    def __init__(self, width=32):
        super().__init__()
        self.c1 = nn.Conv1d(CHANNELS, width, 3, dilation=1)
        self.c2 = nn.Conv1d(width, width, 3, dilation=2)
        self.c3 = nn.Conv1d(width, width, 3, dilation=4)
        self.out = nn.Linear(width, HORIZON * CHANNELS)

    def forward(self, x):
        h = x.transpose(1, 2)
        for conv in (self.c1, self.c2, self.c3):
            pad = conv.dilation[0] * (conv.kernel_size[0] - 1)
            h = torch.relu(conv(nn.functional.pad(h, (pad, 0))))
        return self.out(h[:, :, -1]).view(-1, HORIZON, CHANNELS)


def main():
    set_seed(123)
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    train_dl = DataLoader(SensorWindows(0, 1500), batch_size=64, shuffle=True)
    test_dl = DataLoader(SensorWindows(1500, 2000), batch_size=128)

    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    # 第 6 和第 10 个 epoch 之后学习率降为十分之一
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[6, 10], gamma=0.1)
    model, optimizer, train_dl, test_dl, scheduler = accelerator.prepare(
        model, optimizer, train_dl, test_dl, scheduler)
    criterion = nn.HuberLoss()

    for epoch in range(EPOCHS):
        model.train()
        total, seen = 0.0, 0
        for context, future in train_dl:
            optimizer.zero_grad()
            loss = criterion(model(context), future)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(context)
            seen += len(context)

        model.eval()
        squared, count = 0.0, 0
        with torch.no_grad():
            for context, future in test_dl:
                pred, ref = accelerator.gather_for_metrics((model(context), future))
                squared += (pred - ref).pow(2).sum().item()
                count += ref.numel()
        accelerator.print(f"epoch {epoch:2d}  train {total / seen:.4f}  test RMSE {math.sqrt(squared / count):.4f}")


if __name__ == "__main__":
    main()
