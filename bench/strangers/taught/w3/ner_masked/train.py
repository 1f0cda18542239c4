import random

import torch
import torch.nn as nn
import torch.nn.functional as F

from data import TAGS, Batcher, corpus


class Tagger(nn.Module):
    def __init__(self, n_words, d=32):
        super().__init__()
        self.emb = nn.Embedding(n_words, d, padding_idx=0)
        self.drop = nn.Dropout(0.2)
        self.rnn = nn.LSTM(d, d, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * d, len(TAGS))

    def forward(self, x, mask):
        packed = nn.utils.rnn.pack_padded_sequence(self.drop(self.emb(x)), mask.sum(1), batch_first=True,
                                                   enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(self.drop(h))


def masked_loss(logits, y, mask):
    # tag 0 is "O" and also fills the padded places, so the selection has to come from the mask
    per_token = F.cross_entropy(logits.transpose(1, 2), y, reduction="none")
    return (per_token * mask).sum() / mask.sum()


def entity_f1(model, batches):
    model.eval()
    tp = fp = fn = 0
    with torch.no_grad():
        for x, y, mask in batches:
            p = model(x, mask).argmax(-1)
            hit = (p == y) & (y > 0) & mask
            tp += hit.sum().item()
            fp += ((p > 0) & (p != y) & mask).sum().item()
            fn += ((y > 0) & (p != y) & mask).sum().item()
    return 2 * tp / max(1, 2 * tp + fp + fn)


def main():
    random.seed(0)
    torch.manual_seed(0)
    train, dev = corpus(500, 1), corpus(150, 2)
    vocab = {w: i + 2 for i, w in enumerate(sorted({w for s, _ in train for w in s}))}
    tr, dv = Batcher(train, vocab, 25, True), Batcher(dev, vocab, 75, False)
    model = Tagger(len(vocab) + 2)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(4):
        model.train()
        tot = ntok = 0
        for x, y, mask in tr:
            loss = masked_loss(model(x, mask), y, mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * mask.sum().item()
            ntok += mask.sum().item()
        print(f"epoch {epoch} loss/token {tot / ntok:.4f} dev token F1 {entity_f1(model, dv):.3f}")


if __name__ == "__main__":
    main()
