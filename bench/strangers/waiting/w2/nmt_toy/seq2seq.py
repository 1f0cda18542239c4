"""Seq2seq with GRUs: spelled-out numbers -> digits ("four hundred two" -> "4 0 2")."""
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen " \
       "fifteen sixteen seventeen eighteen nineteen".split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()


def spell(n):
    if n < 20:
        return [ONES[n]]
    if n < 100:
        return [TENS[n // 10]] + ([ONES[n % 10]] if n % 10 else [])
    return [ONES[n // 100], "hundred"] + (spell(n % 100) if n % 100 else [])


class Vocab:
    def __init__(self, sentences):
        words = sorted({w for s in sentences for w in s})
        self.itos = ["<pad>", "<sos>", "<eos>"] + words
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def numericalize(self, s):
        return torch.tensor([1] + [self.stoi[w] for w in s] + [2])


class Encoder(nn.Module):
    def __init__(self, vocab_size, emb, hid):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb, padding_idx=0)
        self.rnn = nn.GRU(emb, hid, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hid, hid)

    def forward(self, src):
        _, h = self.rnn(self.embedding(src))
        return torch.tanh(self.fc(torch.cat([h[0], h[1]], dim=1))).unsqueeze(0)


class Decoder(nn.Module):
    def __init__(self, vocab_size, emb, hid):
        super().__init__()
        self.vocab_size = vocab_size
        self.embedding = nn.Embedding(vocab_size, emb, padding_idx=0)
        self.rnn = nn.GRU(emb, hid, batch_first=True)
        self.out = nn.Linear(hid, vocab_size)

    def forward(self, tokens, hidden):
        o, hidden = self.rnn(self.embedding(tokens), hidden)
        return self.out(o), hidden


class Seq2Seq(nn.Module):
    def __init__(self, enc, dec):
        super().__init__()
        self.enc, self.dec = enc, dec

    def forward(self, src, trg_in):
        logits, _ = self.dec(trg_in, self.enc(src))
        return logits


def exact_match(model, src, trg):
    model.eval()
    with torch.no_grad():
        h = model.enc(src)
        tok = torch.ones(len(src), 1, dtype=torch.long)
        outs = []
        for _ in range(trg.size(1) - 1):
            logits, h = model.dec(tok, h)
            tok = logits.argmax(-1)
            outs.append(tok)
        pred = torch.cat(outs, 1)
    gold = trg[:, 1:]
    return ((pred == gold) | (gold == 0)).all(1).float().mean().item()


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    numbers = random.sample(range(1000), 1000)
    pairs = [(spell(n), list(str(n))) for n in numbers]
    src_vocab, trg_vocab = Vocab([s for s, _ in pairs]), Vocab([t for _, t in pairs])
    src = pad_sequence([src_vocab.numericalize(s) for s, _ in pairs], batch_first=True)
    trg = pad_sequence([trg_vocab.numericalize(t) for _, t in pairs], batch_first=True)

    model = Seq2Seq(Encoder(len(trg_vocab), 32, 64), Decoder(len(src_vocab), 32, 64))
    criterion = nn.CrossEntropyLoss(ignore_index=0)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(15):
        model.train()
        for idx in torch.randperm(900).split(50):
            logits = model(src[idx], trg[idx, :-1])
            loss = criterion(logits.flatten(0, 1), trg[idx, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        if epoch % 5 == 4:
            print(epoch + 1, f"loss {loss.item():.3f}", f"exact {exact_match(model, src[900:], trg[900:]):.2f}")
