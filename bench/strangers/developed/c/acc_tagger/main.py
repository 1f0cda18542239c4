"""Accelerate, gradient accumulation, layer-wise learning rates."""
import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Brackets(Dataset):
    """Is a string of brackets balanced?"""

    def __init__(self, n, length=16, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.x, self.y = [], []
        for i in range(n):
            s = self.balanced(length, g)
            if i % 2:
                j = torch.randint(length, (1,), generator=g).item()
                s[j] = 1 - s[j]
            self.x.append(torch.tensor(s))
            self.y.append((i + 1) % 2)

    @staticmethod
    def balanced(n, g):
        s, opened, depth = [], 0, 0
        for _ in range(n):
            may_open, may_close = opened < n // 2, depth > 0
            up = may_open and (not may_close or torch.rand((), generator=g).item() < 0.5)
            s.append(0 if up else 1)
            opened += up
            depth += 1 if up else -1
        return s

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"ids": self.x[i], "label": self.y[i]}


class Classifier(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.emb = nn.Embedding(2, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.head = nn.Linear(d, 2)

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0].mean(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--accumulate", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=6)
    args = ap.parse_args()
    set_seed(3)
    acc = Accelerator(gradient_accumulation_steps=args.accumulate, cpu=not torch.cuda.is_available())

    net = Classifier()
    slow = [*net.emb.parameters(), *net.rnn.parameters()]
    opt = torch.optim.AdamW([{"params": slow, "lr": 4e-3}, {"params": net.head.parameters(), "lr": 1e-2}], weight_decay=0.0)
    train = DataLoader(Brackets(1024, seed=1), 16, shuffle=True)
    test = DataLoader(Brackets(256, seed=2), 64)
    updates = args.epochs * -(-len(train) // args.accumulate)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.1, total_iters=updates)
    net, opt, train, test, sched = acc.prepare(net, opt, train, test, sched)

    for epoch in range(args.epochs):
        net.train()
        for batch in train:
            with acc.accumulate(net):
                loss = nn.functional.cross_entropy(net(batch["ids"]), batch["label"])
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(net.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
        net.eval()
        hits = []
        for batch in test:
            with torch.no_grad():
                pred = net(batch["ids"]).argmax(-1)
            pred, ref = acc.gather_for_metrics((pred, batch["label"]))
            hits.append((pred == ref).float())
        acc.print(f"epoch {epoch} accuracy {torch.cat(hits).mean().item():.3f}")


if __name__ == "__main__":
    main()
