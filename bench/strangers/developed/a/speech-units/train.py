"""CTC training of a small unit recogniser. Runs on one or several GPUs with Accelerate:

    accelerate launch train.py --precision fp16
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, Dataset

UNITS, MELS = 8, 20


class Utterances(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        table = torch.randn(UNITS, MELS, generator=torch.Generator().manual_seed(500))
        self.rows = []
        for _ in range(n):
            k = int(torch.randint(3, 7, (1,), generator=g))
            units = torch.randint(1, UNITS, (k,), generator=g)
            spans = torch.randint(3, 6, (k,), generator=g)
            frames = table[units].repeat_interleave(spans, 0)
            frames = frames + 0.5 * torch.randn(frames.shape, generator=g)
            self.rows.append((frames, units))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    frames, units = zip(*rows)
    return {
        "frames": nn.utils.rnn.pad_sequence(frames, batch_first=True),
        "frame_len": torch.tensor([len(f) for f in frames]),
        "units": nn.utils.rnn.pad_sequence(units, batch_first=True),
        "unit_len": torch.tensor([len(u) for u in units]),
    }


class Recogniser(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.front = nn.Conv1d(MELS, dim, 3, padding=1)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, UNITS)

    def forward(self, frames):
        h = F.relu(self.front(frames.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.out(h)


def ctc(logits, batch):
    logp = logits.float().log_softmax(-1).transpose(0, 1)
    return F.ctc_loss(logp, batch["units"], batch["frame_len"], batch["unit_len"], blank=0, zero_infinity=True)


@torch.no_grad()
def validate(acc, net, loader):
    net.eval()
    losses = []
    for batch in loader:
        losses.append(acc.gather(ctc(net(batch["frames"]), batch).repeat(1)))
    return torch.cat(losses).mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--precision", choices=["no", "fp16"], default="fp16" if torch.cuda.is_available() else "no")
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--max-norm", type=float, default=1.0)
    ap.add_argument("--lr", type=float, default=0.2)
    args = ap.parse_args()

    set_seed(19)
    acc = Accelerator(mixed_precision=args.precision, cpu=not torch.cuda.is_available())
    net = Recogniser()
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    train = DataLoader(Utterances(320, 1), 16, shuffle=True, collate_fn=collate)
    dev = DataLoader(Utterances(64, 2), 32, collate_fn=collate)
    net, opt, train, dev = acc.prepare(net, opt, train, dev)

    for epoch in range(args.epochs):
        net.train()
        total = 0.0
        for batch in train:
            opt.zero_grad()
            loss = ctc(net(batch["frames"]), batch)
            acc.backward(loss)
            clip_grad_norm_(net.parameters(), args.max_norm)
            opt.step()
            total += loss.item()
        dev_loss = validate(acc, net, dev)
        acc.print(f"epoch {epoch}: train {total / len(train):.3f} dev {dev_loss:.3f}")


if __name__ == "__main__":
    main()
