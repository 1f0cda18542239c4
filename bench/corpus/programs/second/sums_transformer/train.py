# Seq2seq transformer on digit strings of different lengths:
#     "s 4 1 3" -> "1 3 4"  (sort)       "r 4 1 3" -> "3 1 4"  (reverse)
# the first token of the source says which of the two is wanted.
import math
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

PAD, BOS, EOS, SORT, REV = 10, 11, 12, 13, 14   # 0..9 are the digits
VOCAB = 15
MIN_LEN, MAX_LEN = 2, 4
N_TRAIN, N_TEST = 5120, 300

D_MODEL, N_HEAD, N_LAYERS, D_FF, DROPOUT = 48, 4, 1, 64, 0.0
BATCH = 64
EPOCHS = 3
PEAK_LR, WARMUP = 5e-3, 40
CLIP = 1.0


class DigitTasks(Dataset):
    def __init__(self, n, seen=()):
        self.pairs, self.keys = [], set()
        while len(self.pairs) < n:
            k = random.randint(MIN_LEN, MAX_LEN)
            digits = [random.randint(0, 9) for _ in range(k)]
            op = random.choice([SORT, REV])
            key = (op, *digits)
            if key in seen:      # keep the test strings out of train
                continue
            self.keys.add(key)
            out = sorted(digits) if op == SORT else digits[::-1]
            self.pairs.append(([op] + digits, [BOS] + out + [EOS]))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        src, tgt = self.pairs[i]
        return torch.tensor(src), torch.tensor(tgt)


def collate(batch):
    src, tgt = zip(*batch)
    src = pad_sequence(src, batch_first=True, padding_value=PAD)
    tgt = pad_sequence(tgt, batch_first=True, padding_value=PAD)
    return src, tgt


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=32):
        super().__init__()
        pos = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(100.0) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, D_MODEL, padding_idx=PAD)
        self.pos = PositionalEncoding(D_MODEL)
        enc_layer = nn.TransformerEncoderLayer(D_MODEL, N_HEAD, D_FF, DROPOUT, batch_first=True)
        dec_layer = nn.TransformerDecoderLayer(D_MODEL, N_HEAD, D_FF, DROPOUT, batch_first=True)
        self.encoder = nn.TransformerEncoder(enc_layer, N_LAYERS, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(dec_layer, N_LAYERS)
        self.out = nn.Linear(D_MODEL, VOCAB)

    def forward(self, src, tgt):
        causal = torch.triu(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool), diagonal=1)
        src_pad, tgt_pad = src == PAD, tgt == PAD
        memory = self.encoder(self.pos(self.embed(src)), src_key_padding_mask=src_pad)
        hidden = self.decoder(
            self.pos(self.embed(tgt)),
            memory,
            tgt_mask=causal,
            tgt_key_padding_mask=tgt_pad,
            memory_key_padding_mask=src_pad,
        )
        return self.out(hidden)


@torch.no_grad()
def greedy_decode(model, src, max_len):
    ys = torch.full((src.size(0), 1), BOS)
    done = torch.zeros(src.size(0), dtype=torch.bool)
    for _ in range(max_len):
        nxt = model(src, ys)[:, -1].argmax(-1)
        nxt = nxt.masked_fill(done, PAD)
        ys = torch.cat([ys, nxt[:, None]], dim=1)
        done |= nxt == EOS
        if done.all():
            break
    return ys


@torch.no_grad()
def exact_match(model, loader):
    model.eval()
    hits, total = 0, 0
    for src, tgt in loader:
        ys = greedy_decode(model, src, tgt.size(1) - 1)
        if ys.size(1) < tgt.size(1):
            ys = nn.functional.pad(ys, (0, tgt.size(1) - ys.size(1)), value=PAD)
        hits += (ys == tgt).all(dim=1).sum().item()
        total += src.size(0)
    return hits / total


test_set = DigitTasks(N_TEST)
train_set = DigitTasks(N_TRAIN, seen=test_set.keys)
train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True, collate_fn=collate)
test_loader = DataLoader(test_set, batch_size=300, collate_fn=collate)

model = Seq2Seq()
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_LR, betas=(0.9, 0.98), weight_decay=0.01)
total_steps = EPOCHS * len(train_loader)


def lr_factor(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / max(1, total_steps - WARMUP)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_factor)
print(f"{sum(p.numel() for p in model.parameters())} parameters, {total_steps} steps")

for epoch in range(1, EPOCHS + 1):
    model.train()
    t0 = time.time()
    loss_sum, tok_hits, tok_count = 0.0, 0, 0
    for src, tgt in train_loader:
        tgt_in, tgt_out = tgt[:, :-1], tgt[:, 1:]      # teacher forcing
        logits = model(src, tgt_in)
        loss = criterion(logits.reshape(-1, VOCAB), tgt_out.reshape(-1))

        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        scheduler.step()

        real = tgt_out != PAD
        loss_sum += loss.item() * real.sum().item()
        tok_hits += ((logits.argmax(-1) == tgt_out) & real).sum().item()
        tok_count += real.sum().item()
    em = exact_match(model, test_loader)
    print(
        f"[{epoch}/{EPOCHS}] train loss {loss_sum / tok_count:.4f} | token acc {tok_hits / tok_count:.4f} "
        f"| test exact match {em:.4f} | {time.time() - t0:.1f}s"
    )

torch.save(model.state_dict(), "seq2seq.pt")
print(f"final exact match: {exact_match(model, test_loader):.4f}")
