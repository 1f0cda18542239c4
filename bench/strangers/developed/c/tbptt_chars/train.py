import random
import torch, torch.nn as nn

"""Stateful char LSTM, truncated BPTT. Text is laid out in B parallel columns, read left to right, never shuffled."""


def nonsense(n, seed):
    r = random.Random(seed)
    syl = ["ka", "lo", "mi", "ne", "tu", "ra"]
    out = []
    while len(out) < n:
        w = [r.choice(syl) for _ in range(r.randint(1, 3))]
        out += "".join(w + w[:1]) + (". " if r.random() < 0.15 else " ")
    return "".join(out)[:n]


def columns(ids, b):
    n = len(ids) // b
    return ids[: n * b].view(b, n)


def windows(cols, t):
    for i in range(0, cols.size(1) - 1, t):
        j = min(i + t, cols.size(1) - 1)
        yield cols[:, i:j], cols[:, i + 1:j + 1]


class CharLM(nn.Module):
    def __init__(self, vocab, d=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.rnn = nn.LSTM(d, d, num_layers=2, dropout=0.1, batch_first=True)
        self.out = nn.Linear(d, vocab)
        self.out.weight = self.emb.weight          # tied

    def forward(self, x, state=None):
        y, state = self.rnn(self.emb(x), state)
        return self.out(y), state


def bits(net, cols, t):
    net.eval()
    state, tot, n = None, 0.0, 0
    with torch.no_grad():
        for x, y in windows(cols, t):
            logits, state = net(x, state)
            tot += nn.functional.cross_entropy(logits.transpose(1, 2), y, reduction="sum").item()
            n += y.numel()
    return tot / n / 0.6931


if __name__ == "__main__":
    torch.manual_seed(0)
    B, T = 16, 25
    tr_txt, va_txt = nonsense(16000, 1), nonsense(3000, 2)
    stoi = {c: i for i, c in enumerate(sorted(set(tr_txt)))}
    enc = lambda s: torch.tensor([stoi[c] for c in s])
    tr, va = columns(enc(tr_txt), B), columns(enc(va_txt), B)

    net = CharLM(len(stoi))
    opt = torch.optim.Adam(net.parameters(), 4e-3)
    for epoch in range(4):
        net.train()
        state = None
        for x, y in windows(tr, T):
            if state is not None:
                state = tuple(s.detach() for s in state)
            logits, state = net(x, state)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            opt.step()
        print(f"epoch {epoch} valid bits/char {bits(net, va, T):.3f}")
