"""Stateful character LM: text is cut into parallel contiguous streams, the hidden state travels from one chunk to
the next (detached), so chunks are read in order. Dynamic evaluation state is separate from the training state."""
import math
import random

import torch
from torch import nn

SUBJ = ["the miller", "a sailor", "the old queen", "my brother", "the fox"]
VERB = ["sees", "follows", "paints", "forgets", "carries"]
OBJ = ["a lantern", "the river", "three apples", "the letter", "a small boat"]


def story(n, seed):
    r = random.Random(seed)
    return " ".join(f"{r.choice(SUBJ)} {r.choice(VERB)} {r.choice(OBJ)}{r.choice(['.', ' again.', ' and sings.'])}"
                    for _ in range(n))


class CharLM(nn.Module):
    def __init__(self, v, d=24, h=96):
        super().__init__()
        self.emb, self.rnn, self.drop, self.out = nn.Embedding(v, d), nn.LSTM(d, h, batch_first=True), nn.Dropout(0.1), nn.Linear(h, v)

    def forward(self, x, state=None):
        y, state = self.rnn(self.emb(x), state)
        return self.out(self.drop(y)), state


def streams(ids, rows):
    return ids[: len(ids) // rows * rows].view(rows, -1)


def windows(s, length):
    for a in range(0, s.size(1) - 1, length):
        b = min(a + length, s.size(1) - 1)
        yield s[:, a:b], s[:, a + 1:b + 1]


def detach(state):
    return tuple(t.detach() for t in state)


def bits(lm, s, length):
    lm.eval()
    state, total, n = None, 0.0, 0
    with torch.no_grad():
        for x, y in windows(s, length):
            z, state = lm(x, state)
            total += nn.functional.cross_entropy(z.flatten(0, 1), y.flatten(), reduction="sum").item()
            n += y.numel()
    return total / n / math.log(2)


def main(epochs=5, rows=16, length=40):
    torch.manual_seed(2), random.seed(2)
    text, held = story(900, 1), story(120, 2)
    chars = sorted(set(text))
    code = {c: i for i, c in enumerate(chars)}
    enc = lambda t: torch.tensor([code[c] for c in t])
    train, dev = streams(enc(text), rows), streams(enc(held), 4)
    lm = CharLM(len(chars))
    opt = torch.optim.Adam(lm.parameters(), 5e-3)
    sched = torch.optim.lr_scheduler.MultiplicativeLR(opt, lambda e: 0.8)
    for epoch in range(epochs):
        lm.train()
        state = None
        running, seen = torch.zeros(()), 0
        for x, y in windows(train, length):
            if state is not None:
                state = detach(state)
            z, state = lm(x, state)
            loss = nn.functional.cross_entropy(z.flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
            opt.step()
            running += loss.detach() * y.numel()      # one sync per epoch instead of one per step
            seen += y.numel()
        sched.step()
        print(f"epoch {epoch}: train {running.item() / seen / math.log(2):.3f} bits, held-out {bits(lm, dev, length):.3f} bits")


if __name__ == "__main__":
    main()
