from functools import partial

import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset, random_split

from loop import KeepBest, Loop, Printer, Scheduling


def turbine_data(n):
    speed = 25 * torch.rand(n)
    yaw = 20 * torch.randn(n)
    density = 1.225 + 0.05 * torch.randn(n)
    power = 0.5 * density * torch.cos(torch.deg2rad(yaw)) ** 3 * (speed.clamp(3, 12) / 12) ** 3
    power = torch.where((speed < 3) | (speed > 23), torch.zeros(()), power) + 0.01 * torch.randn(n)
    x = torch.stack([speed / 12.5 - 1, yaw / 20, (density - 1.225) / 0.05], 1)
    return TensorDataset(x, power.unsqueeze(1))


def one_cycle(optimizer, loop, peak):
    return OneCycleLR(optimizer, max_lr=peak, epochs=loop.epochs, steps_per_epoch=loop.batches_per_epoch)


torch.manual_seed(21)
train, val, test = random_split(turbine_data(3000), [2000, 500, 500])
net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
best = KeepBest()
loop = Loop(net, torch.optim.AdamW(net.parameters()), nn.MSELoss(),
            [Scheduling(partial(one_cycle, peak=1e-2)), Printer(), best])
loop.fit(DataLoader(train, 50, shuffle=True), DataLoader(val, 250), epochs=12)
net.load_state_dict(best.state)
print("test", loop.evaluate(DataLoader(test, 250)))
