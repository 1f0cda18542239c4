"""CTC phoneme recogniser on synthetic filter-bank frames. Uses fp16 on a GPU, fp32 otherwise."""
import argparse
import contextlib
import random
import time

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

PHONES = 10            # 0 is the blank
N_MELS = 20


class Utterances(Dataset):
    def __init__(self, n, seed):
        proto = torch.randn(PHONES, N_MELS, generator=torch.Generator().manual_seed(0)) * 1.5
        rnd, g = random.Random(seed), torch.Generator().manual_seed(seed)
        self.data = []
        for _ in range(n):
            seq = rnd.sample(range(1, PHONES), rnd.randint(3, 6))
            frames = torch.cat([proto[p].repeat(rnd.randint(4, 7), 1) for p in seq])
            self.data.append((frames + 0.5 * torch.randn(frames.shape, generator=g), torch.tensor(seq)))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


def collate(batch):
    xs, ys = zip(*batch)
    return (pad_sequence(xs, batch_first=True), torch.tensor([len(x) for x in xs]),
            torch.cat(ys), torch.tensor([len(y) for y in ys]))


class Recogniser(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.norm = nn.LayerNorm(N_MELS)
        self.rnn = nn.GRU(N_MELS, hidden, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, PHONES)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.norm(x), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(h)


class Session:
    def __init__(self, opts):
        self.opts = opts
        self.dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.half = self.dev.type == "cuda" and not opts.fp32
        self.net = Recogniser().to(self.dev)
        self.optim = torch.optim.AdamW(self.net.parameters(), lr=opts.lr)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.half)
        self.ctc = nn.CTCLoss(blank=0, zero_infinity=True)

    def amp(self):
        return torch.autocast("cuda", dtype=torch.float16) if self.half else contextlib.nullcontext()

    def loss(self, x, xl, y, yl):
        with self.amp():
            logits = self.net(x.to(self.dev), xl)
        # CTC wants full precision
        logp = logits.float().log_softmax(-1).transpose(0, 1)
        return self.ctc(logp, y.to(self.dev), xl, yl)

    def train_epoch(self, loader):
        self.net.train()
        total = 0.0
        for batch in loader:
            self.optim.zero_grad(set_to_none=True)
            loss = self.loss(*batch)
            self.scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.opts.clip)
            self.scaler.step(self.optim)
            self.scaler.update()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def exact(self, loader):
        """share of utterances decoded without any mistake (greedy)"""
        self.net.eval()
        good = n = 0
        for x, xl, y, yl in loader:
            best = self.net(x.to(self.dev), xl).argmax(-1).cpu()
            for hyp, length, ref in zip(best, xl, y.split(yl.tolist())):
                path = hyp[:length].unique_consecutive()
                good += path[path != 0].tolist() == ref.tolist()
                n += 1
        return good / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=7)
    ap.add_argument("--lr", type=float, default=5e-3)
    ap.add_argument("--clip", type=float, default=1.0)
    ap.add_argument("--fp32", action="store_true")
    ap.add_argument("--seed", type=int, default=0)
    opts = ap.parse_args()
    torch.manual_seed(opts.seed)
    train = DataLoader(Utterances(256, 1), 32, shuffle=True, collate_fn=collate)
    test = DataLoader(Utterances(64, 2), 32, collate_fn=collate)
    s = Session(opts)
    for e in range(opts.epochs):
        t0 = time.time()
        l = s.train_epoch(train)
        print(f"{e}: ctc {l:.3f} exact {s.exact(test):.2f} ({time.time() - t0:.1f}s)")


if __name__ == "__main__":
    main()
