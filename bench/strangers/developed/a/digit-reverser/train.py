"""Encoder-decoder with attention: spell a number's digits in sorted order."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, SOS, EOS = 10, 11, 12
VOCAB = 13


def pairs(n, rng):
    out = []
    for _ in range(n):
        digits = [rng.randrange(10) for _ in range(rng.randint(3, 6))]
        out.append((digits, sorted(digits)))
    return out


def collate(batch):
    def pad(rows):
        width = max(map(len, rows))
        return torch.tensor([r + [PAD] * (width - len(r)) for r in rows])
    src = pad([s for s, _ in batch])
    tgt = pad([[SOS] + t + [EOS] for _, t in batch])
    return src, tgt


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, src):
        keep = src != PAD
        memory, _ = self.rnn(self.emb(src))
        last = memory[torch.arange(len(src)), keep.sum(1) - 1]
        return memory, last, keep


class Decoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.cell = nn.GRUCell(2 * dim, dim)
        self.query = nn.Linear(dim, dim, bias=False)
        self.project = nn.Linear(2 * dim, VOCAB)

    def step(self, token, state, memory, keep):
        """One decoding step -> (distribution over the next token, new state)."""
        score = (memory @ self.query(state).unsqueeze(2)).squeeze(2)
        attn = score.masked_fill(~keep, float("-inf")).softmax(1)
        context = (attn.unsqueeze(1) @ memory).squeeze(1)
        state = self.cell(torch.cat([self.emb(token), context], 1), state)
        dist = self.project(torch.cat([state, context], 1)).softmax(1)
        return dist, state


def teacher_forced(enc, dec, src, tgt):
    memory, state, keep = enc(src)
    steps = []
    for t in range(tgt.size(1) - 1):
        dist, state = dec.step(tgt[:, t], state, memory, keep)
        steps.append(dist)
    return torch.stack(steps, dim=2)          # (batch, vocab, time)


@torch.no_grad()
def greedy(enc, dec, src, max_len=8):
    memory, state, keep = enc(src)
    token = torch.full((len(src),), SOS)
    out = []
    for _ in range(max_len):
        dist, state = dec.step(token, state, memory, keep)
        token = dist.argmax(1)
        out.append(token)
    return torch.stack(out, 1)


def exact_match(enc, dec, data):
    enc.eval(), dec.eval()
    src, tgt = collate(data)
    guess = greedy(enc, dec, src)
    good = 0
    for g, (_, want) in zip(guess.tolist(), data):
        g = g[:g.index(EOS)] if EOS in g else g
        good += g == want
    return good / len(data)


def main():
    random.seed(2), torch.manual_seed(2)
    rng = random.Random(2)
    pool = list({tuple(s): (s, t) for s, t in pairs(2200, rng)}.values())
    dev, data = pool[:200], pool[200:]
    enc, dec = Encoder(48), Decoder(48)
    opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=4e-3)
    for epoch in range(4):
        enc.train(), dec.train()
        rng.shuffle(data)
        total, n = 0.0, 0
        for i in range(0, len(data), 64):
            src, tgt = collate(data[i:i + 64])
            out = teacher_forced(enc, dec, src, tgt)
            loss = F.cross_entropy(out, tgt[:, 1:], ignore_index=PAD)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([*enc.parameters(), *dec.parameters()], 1.0)
            opt.step()
            total, n = total + loss.item(), n + 1
        print(f"epoch {epoch + 1}: loss {total / n:.3f}, exact match on dev {exact_match(enc, dec, dev):.3f}")


if __name__ == "__main__":
    main()
