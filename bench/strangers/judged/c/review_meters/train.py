import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

from engine import Engine

VOCAB = 60


def reviews(n, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        y = rng.random() < 0.5
        length = rng.randint(5, 20)
        words = [rng.randint(20, VOCAB - 1) for _ in range(length)]
        for _ in range(2):
            words[rng.randrange(length)] = rng.randint(1, 9) if y else rng.randint(10, 19)
        out.append((torch.tensor(words), float(y)))
    return out


def collate(batch):
    seqs, ys = zip(*batch)
    return pad_sequence(seqs, batch_first=True), torch.tensor([len(s) for s in seqs]), torch.tensor(ys)


class GruSentiment(nn.Module):
    def __init__(self, dim=24, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.emb(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return self.out(torch.cat([h[0], h[1]], dim=-1)).squeeze(-1)


if __name__ == "__main__":
    torch.manual_seed(8)
    train_loader = DataLoader(reviews(800, 1), 32, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(reviews(200, 2), 64, collate_fn=collate)
    model = GruSentiment()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.1, total_iters=4 * len(train_loader))
    engine = Engine(model, nn.BCEWithLogitsLoss(), opt, sched)
    engine.fit(train_loader, epochs=4)
    print("test acc", engine.test(test_loader))
