import torch
import torch.nn as nn
from torch.utils.data import DataLoader

import vocab
from data import Dates, collate


class Seq2Seq(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.emb = nn.Embedding(vocab.SIZE, 48, padding_idx=vocab.PAD)
        self.enc = nn.GRU(48, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)
        self.dec = nn.GRU(48, hidden, batch_first=True)
        self.key = nn.Linear(2 * hidden, hidden)
        self.out = nn.Linear(3 * hidden, vocab.SIZE)

    def encode(self, src):
        mem, h = self.enc(self.emb(src))
        h = torch.tanh(self.bridge(torch.cat([h[0], h[1]], -1))).unsqueeze(0)
        return mem, h, src == vocab.PAD

    def step(self, y, h, mem, pad):
        o, h = self.dec(self.emb(y), h)
        score = (o @ self.key(mem).transpose(1, 2)).masked_fill(pad.unsqueeze(1), -1e9)
        ctx = score.softmax(-1) @ mem
        return self.out(torch.cat([o, ctx], -1)), h

    def forward(self, src, tgt_in):
        mem, h, pad = self.encode(src)
        return self.step(tgt_in, h, mem, pad)[0]

    @torch.no_grad()
    def greedy(self, src, max_len=20):
        mem, h, pad = self.encode(src)
        y = torch.full((len(src), 1), vocab.BOS)
        outs = []
        for _ in range(max_len):
            logit, h = self.step(y, h, mem, pad)
            y = logit.argmax(-1)
            outs.append(y)
            if (torch.cat(outs, 1) == vocab.EOS).any(1).all():
                break
        return [vocab.decode(r) for r in torch.cat(outs, 1).tolist()]


def main():
    torch.manual_seed(0)
    train = DataLoader(Dates(3000, 0), batch_size=64, shuffle=True, collate_fn=collate)
    held = Dates(200, 1)
    net = Seq2Seq()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    crit = nn.CrossEntropyLoss(ignore_index=vocab.PAD)
    for epoch in range(4):
        net.train()
        s = 0.0
        for src, tgt in train:
            logits = net(src, tgt[:, :-1])
            loss = crit(logits.flatten(0, 1), tgt[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            s += loss.item()
        net.eval()
        src, _ = collate([held[i] for i in range(len(held))])
        hyp = net.greedy(src)
        acc = sum(h == t for h, (_, t) in zip(hyp, held.pairs)) / len(held)
        print(f"epoch {epoch} loss {s / len(train):.3f} exact {acc:.3f}  e.g. {held.pairs[0][0]!r} -> {hyp[0]!r}")


if __name__ == "__main__":
    main()
