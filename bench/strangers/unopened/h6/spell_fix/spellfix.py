"""Character seq2seq that repairs typos."""
import logging
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(levelname).1s %(message)s")
logger = logging.getLogger(__name__)

WORDS = ("apple bread candle dragon engine forest garden hammer island jacket kitten ladder magnet needle orange "
         "pencil quarry rabbit summer ticket window yellow zipper").split()
PAD, SOS, EOS = 0, 1, 2
CH = {c: i + 3 for i, c in enumerate("abcdefghijklmnopqrstuvwxyz")}
INV = {i: c for c, i in CH.items()}


def typo(word, rng):
    i = rng.randrange(len(word) - 1)
    kind = rng.randrange(3)
    if kind == 0:
        return word[:i] + word[i + 1] + word[i] + word[i + 2:]
    if kind == 1:
        return word[:i] + word[i + 1:]
    return word[:i] + rng.choice("aeiourst") + word[i + 1:]


class TypoDataset(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.pairs = [(typo(w, rng), w) for w in rng.choices(WORDS, k=n)]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        noisy, clean = self.pairs[i]
        src = torch.tensor([CH[c] for c in noisy] + [EOS])
        tgt = torch.tensor([SOS] + [CH[c] for c in clean] + [EOS])
        return src, tgt


def shift_right(labels, start=SOS):
    return F.pad(labels, (1, 0), value=start)[:, :-1]


def collate(batch):
    src, tgt = zip(*batch)
    return {"src": pad_sequence(src, batch_first=True), "labels": pad_sequence(tgt, batch_first=True)}


class Fixer(nn.Module):
    def __init__(self, n_chars=29, d=64):
        super().__init__()
        self.emb = nn.Embedding(n_chars, d, padding_idx=PAD)
        self.enc = nn.GRU(d, d, batch_first=True)
        self.dec = nn.GRUCell(2 * d, d)
        self.out = nn.Linear(2 * d, n_chars)

    def encode(self, src):
        memory, h = self.enc(self.emb(src))
        return memory, (src == PAD), h[0]

    def step(self, tok, h, memory, mask):
        w = (memory @ h.unsqueeze(-1)).squeeze(-1).masked_fill(mask, -1e9).softmax(-1)
        ctx = (w.unsqueeze(1) @ memory).squeeze(1)
        h = self.dec(torch.cat([self.emb(tok), ctx], -1), h)
        return self.out(torch.cat([h, ctx], -1)), h

    def forward(self, src, dec_in):
        memory, mask, h = self.encode(src)
        outs = []
        for t in range(dec_in.shape[1]):
            o, h = self.step(dec_in[:, t], h, memory, mask)
            outs.append(o)
        return torch.stack(outs, 1)

    @torch.no_grad()
    def fix(self, word, limit=10):
        memory, mask, h = self.encode(torch.tensor([[CH[c] for c in word] + [EOS]]))
        tok, text = torch.tensor([SOS]), ""
        for _ in range(limit):
            o, h = self.step(tok, h, memory, mask)
            tok = o.argmax(-1)
            if tok.item() == EOS:
                break
            text += INV.get(tok.item(), "_")
        return text


def main(epochs=8):
    torch.manual_seed(0)
    loader = DataLoader(TypoDataset(800, 0), batch_size=40, shuffle=True, collate_fn=collate)
    held = TypoDataset(60, 1).pairs
    net = Fixer()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(1, epochs + 1):
        net.train()
        mean = 0.0
        for b in loader:
            logits = net(b["src"], shift_right(b["labels"]))
            loss = F.cross_entropy(logits.transpose(1, 2), b["labels"], ignore_index=PAD)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            mean += loss.item() / len(loader)
        if epoch % 2 == 0:
            net.eval()
            ok = sum(net.fix(x) == y for x, y in held) / len(held)
            logger.info("epoch %d loss %.4f words repaired %.2f", epoch, mean, ok)
    logger.info("%s -> %s", held[0][0], net.fix(held[0][0]))


if __name__ == "__main__":
    main()
