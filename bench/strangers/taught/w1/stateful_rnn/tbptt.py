"""Stateful LSTM over one long sensor stream with truncated BPTT, two parameter groups and no Trainer."""
import torch
from torch import nn

torch.manual_seed(0)
T, STREAMS, CHUNK, HID = 1600, 8, 40, 32

t = torch.arange(T + 1).float()
phase = torch.rand(STREAMS, 1) * 6.28
stream = torch.sin(0.12 * t + phase) * torch.sin(0.017 * t + 2 * phase) + 0.03 * torch.randn(STREAMS, T + 1)
train_x, valid_x = stream[:, :1281], stream[:, 1280:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(1, HID, batch_first=True)
        self.read = nn.Linear(HID, 1)
        nn.init.zeros_(self.read.weight)
        nn.init.zeros_(self.read.bias)
        nn.init.orthogonal_(self.cell.weight_hh_l0)
        with torch.no_grad():
            self.cell.bias_ih_l0[HID:2 * HID].fill_(1.0)

    def forward(self, x, state=None):
        h, state = self.cell(x.unsqueeze(-1), state)
        return x + self.read(h).squeeze(-1), state


net = Forecaster()
opt = torch.optim.RMSprop([
    {"params": net.cell.parameters()},
    {"params": net.read.parameters(), "lr": 2e-3, "weight_decay": 1e-4},
], lr=3e-3)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=2)
mse = nn.MSELoss()


def chunks(seq):
    for s in range(0, seq.size(1) - CHUNK, CHUNK):
        yield seq[:, s:s + CHUNK], seq[:, s + 1:s + CHUNK + 1]


def validate():
    net.eval()
    state, losses = None, []
    with torch.no_grad():
        for x, y in chunks(valid_x):
            out, state = net(x, state)
            losses.append(mse(out, y).item())
    net.train()
    return sum(losses) / len(losses)


print("persistence baseline", validate())
for epoch in range(20):
    state, total, n = None, 0.0, 0
    for x, y in chunks(train_x):
        if state is not None:
            state = tuple(s.detach() for s in state)
        out, state = net(x, state)
        loss = mse(out, y)
        for p in net.parameters():
            p.grad = None
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        total, n = total + loss.item(), n + 1
    v = validate()
    sched.step(v)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} train {total / n:.5f} valid {v:.5f} lr {opt.param_groups[0]['lr']:.1e}")
