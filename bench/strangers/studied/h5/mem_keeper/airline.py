# seasonal passengers, N-BEATS style blocks. best weights are held in memory, nothing goes to disk
import io
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
t = np.arange(600)
y = (1 + t / 400) * (10 + 3 * np.sin(2 * np.pi * t / 12)) + rng.normal(0, 0.8, 600)
y = ((y - y[:400].mean()) / y[:400].std()).astype(np.float32)
BACK, AHEAD = 36, 6


def cut(lo, hi):
    starts = range(lo, hi - BACK - AHEAD)
    return (torch.tensor(np.array([y[s:s + BACK] for s in starts])),
            torch.tensor(np.array([y[s + BACK:s + BACK + AHEAD] for s in starts])))


class Block(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(BACK, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.back, self.fore = nn.Linear(width, BACK), nn.Linear(width, AHEAD)

    def forward(self, x):
        h = self.fc(x)
        return self.back(h), self.fore(h)


class NBeats(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(n))

    def forward(self, x):
        level = x[:, -1:]
        x = x - level
        total = 0
        for b in self.blocks:
            back, fore = b(x)
            x, total = x - back, total + fore
        return total + level


class Keeper:
    """Remembers a serialised copy of the model for the lowest score."""

    def __init__(self):
        self.score, self.buffer, self.when = float("inf"), None, None

    def offer(self, score, model, when):
        if score >= self.score:
            return False
        self.score, self.when = score, when
        self.buffer = io.BytesIO()
        torch.save(model.state_dict(), self.buffer)
        return True

    def bring_back(self, model):
        self.buffer.seek(0)
        model.load_state_dict(torch.load(self.buffer))


torch.manual_seed(1)
tr, va, te = cut(0, 400), cut(364, 500), cut(464, 600)
net, keeper = NBeats(), Keeper()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
bad = 0
for epoch in range(60):
    net.train()
    for idx in torch.randperm(len(tr[0])).split(32):
        opt.zero_grad()
        nn.functional.l1_loss(net(tr[0][idx]), tr[1][idx]).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        v = nn.functional.l1_loss(net(va[0]), va[1]).item()
    bad = 0 if keeper.offer(v, net, epoch) else bad + 1
    if epoch % 10 == 0:
        print(f"{epoch:3d} valid {v:.4f}")
    if bad == 12:
        break
keeper.bring_back(net)
with torch.no_grad():
    again = nn.functional.l1_loss(net(va[0]), va[1]).item()
    test = nn.functional.l1_loss(net(te[0]), te[1]).item()
print(f"best epoch {keeper.when}: valid {keeper.score:.4f} (again {again:.4f}) test {test:.4f}")
