# Long single-epoch run over a big corpus, checkpointed every few hundred steps (here: tiny numbers).
#   python train.py --dir runs/x            first job
#   python train.py --dir runs/x            ... same command again after preemption
import argparse, random, tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler


class Bracket(Dataset):
    """sequences over ()[] of length 24; target: is it balanced?"""
    PAIR = {"(": ")", "[": "]"}

    def __init__(self, n, seed):
        r = random.Random(seed)
        self.rows = [self.one(r) for _ in range(n)]

    def one(self, r, length=24):
        out, stack = [], []
        while len(out) + len(stack) < length:
            if stack and r.random() < 0.45:
                out.append(self.PAIR[stack.pop()])
            else:
                c = r.choice("([")
                stack.append(c)
                out.append(c)
        while stack:
            out.append(self.PAIR[stack.pop()])
        out = out[:length]
        label = r.random() < 0.5
        if not label:
            for k in r.sample(range(length), 8):
                out[k] = r.choice("()[]")
        return torch.tensor(["()[]".index(c) for c in out]), float(self.balanced(out))

    def balanced(self, seq):
        st = []
        for c in seq:
            if c in self.PAIR:
                st.append(self.PAIR[c])
            elif not st or st.pop() != c:
                return False
        return not st

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.g, self.o = nn.Embedding(4, 16), nn.GRU(16, 48, batch_first=True), nn.Linear(48, 1)

    def forward(self, s):
        return self.o(self.g(self.e(s))[0].amax(1)).squeeze(-1)


@torch.no_grad()
def held_out(net, loader):
    net.eval()
    ok = sum(((net(s) > 0) == (y > .5)).sum().item() for s, y in loader)
    net.train()
    return ok / len(loader.dataset)


def job(folder, max_steps, save_every, preempt_at=None, seed=0):
    random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)
    train, val = Bracket(2000, 1), Bracket(300, 2)
    gen = torch.Generator().manual_seed(seed)
    loader = DataLoader(train, 16, sampler=RandomSampler(train, generator=gen), drop_last=True)
    val_loader = DataLoader(val, 100)
    net = Net()
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.05, max_steps)
    crit = nn.BCEWithLogitsLoss()
    path, step = folder / "state.pt", 0
    if path.exists():
        st = torch.load(path, weights_only=True)
        net.load_state_dict(st["net"]), opt.load_state_dict(st["opt"]), sched.load_state_dict(st["sched"])
        step = st["step"]
        print(f"-- picked up at step {step}")
    net.train()
    while step < max_steps:
        for s, y in loader:
            loss = crit(net(s), y.float())
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            if step % save_every == 0:
                torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(),
                            "step": step}, path)
                print(f"step {step} loss {loss.item():.3f} held-out {held_out(net, val_loader):.3f}")
            if step == max_steps or step == preempt_at:
                return


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--dir", type=Path)
    ap.add_argument("--steps", type=int, default=125)
    ap.add_argument("--save-every", type=int, default=25)
    a = ap.parse_args()
    if a.dir:
        a.dir.mkdir(parents=True, exist_ok=True)
        job(a.dir, a.steps, a.save_every)
    else:
        with tempfile.TemporaryDirectory() as d:
            job(Path(d), a.steps, a.save_every, preempt_at=60)
            job(Path(d), a.steps, a.save_every)
