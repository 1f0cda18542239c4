# Homework 4: translate human dates ("3 mar 1997") to ISO ("1997-03-03") with an attention-free seq2seq GRU
import random
import time

import torch
import torch.nn as nn

random.seed(1)
torch.manual_seed(1)

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
SOS, EOS, PAD = 0, 1, 2
chars = sorted(set("0123456789- " + "".join(MONTHS)))
stoi = {c: i + 3 for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
V = len(stoi) + 3
LEN_IN, LEN_OUT = 12, 11


def sample():
    d, m, y = random.randint(1, 28), random.randint(1, 12), random.randint(1950, 2020)
    src = f"{d} {MONTHS[m - 1]} {y}"
    tgt = f"{y}-{m:02d}-{d:02d}"
    s = [stoi[c] for c in src]
    s += [PAD] * (LEN_IN - len(s))
    t = [stoi[c] for c in tgt] + [EOS]
    return s, t


def batch(n):
    pairs = [sample() for _ in range(n)]
    return torch.tensor([p[0] for p in pairs]), torch.tensor([p[1] for p in pairs])


class EncoderRNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(V, hidden, padding_idx=PAD)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, x):
        _, h = self.gru(self.embedding(x))
        return h


class DecoderRNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(V, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, V)

    def forward(self, tok, h):
        o, h = self.gru(self.embedding(tok), h)
        return self.out(o), h


def train_batch(src, tgt, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    encoder_optimizer.zero_grad()
    h = encoder(src)
    sos = torch.full((src.size(0), 1), SOS)
    dec_in = torch.cat([sos, tgt[:, :-1]], 1)      # teacher forcing
    logits, _ = decoder(dec_in, h)
    loss = criterion(logits.reshape(-1, V), tgt.reshape(-1))
    encoder_optimizer.zero_grad()
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item()


@torch.no_grad()
def translate(src, encoder, decoder):
    h = encoder(src)
    tok = torch.full((src.size(0), 1), SOS)
    outs = []
    for _ in range(LEN_OUT):
        logits, h = decoder(tok, h)
        tok = logits.argmax(-1)
        outs.append(tok)
    return torch.cat(outs, 1)


def train_iters(n_iters, print_every=100, lr=0.05):
    encoder, decoder = EncoderRNN(64), DecoderRNN(64)
    encoder_optimizer = torch.optim.SGD(encoder.parameters(), lr=lr, momentum=0.9)
    decoder_optimizer = torch.optim.SGD(decoder.parameters(), lr=lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    acc_loss, start = 0, time.time()
    for it in range(1, n_iters + 1):
        src, tgt = batch(64)
        acc_loss += train_batch(src, tgt, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion)
        if it % print_every == 0:
            print(f"{it:5d} {time.time() - start:5.1f}s  loss {acc_loss / print_every:.4f}")
            acc_loss = 0
    return encoder, decoder


if __name__ == "__main__":
    enc, dec = train_iters(500)
    s, t = batch(200)
    pred = translate(s, enc, dec)
    print("exact match:", (pred == t).all(1).float().mean().item())
    for i in range(3):
        print("".join(itos.get(k, "") for k in s[i].tolist()), "->", "".join(itos.get(k, "") for k in pred[i].tolist()))
