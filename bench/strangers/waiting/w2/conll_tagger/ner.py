import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

ENTITY_TYPES = ["PER", "LOC", "ORG"]
NAMES = {
    "PER": [["Anna"], ["John", "Smith"], ["Maria", "Lopez"]],
    "LOC": [["Paris"], ["New", "York"], ["Berlin"]],
    "ORG": [["Acme", "Corp"], ["Unicef"], ["Globex"]],
}
TEMPLATES = ["{PER} works for {ORG} in {LOC}", "yesterday {PER} flew to {LOC}", "{ORG} opened an office in {LOC}"]


def tag_list():
    tags = ["O"]
    for t in ENTITY_TYPES:
        tags += [f"B-{t}", f"I-{t}"]
    return tags


TAG2ID = {t: i for i, t in enumerate(tag_list())}
NUM_TAGS = 2 * len(ENTITY_TYPES)
PAD_TAG = -100


def sentences(n, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        toks, tags = [], []
        for w in rng.choice(TEMPLATES).split():
            if w.startswith("{"):
                t = w.strip("{}")
                name = rng.choice(NAMES[t])
                toks += name
                tags += [f"B-{t}"] + [f"I-{t}"] * (len(name) - 1)
            else:
                toks.append(w)
                tags.append("O")
        out.append((toks, tags))
    return out


class Vocab:
    def __init__(self, sents):
        words = sorted({w for s, _ in sents for w in s})
        self.idx = {w: i for i, w in enumerate(["<pad>", "<unk>"] + words)}

    def __len__(self):
        return len(self.idx)

    def encode(self, toks):
        return torch.tensor([self.idx.get(w, 1) for w in toks])


def make_collate(vocab):
    def collate(batch):
        x = pad_sequence([vocab.encode(s) for s, _ in batch], batch_first=True)
        y = pad_sequence([torch.tensor([TAG2ID[t] for t in tags]) for _, tags in batch],
                         batch_first=True, padding_value=PAD_TAG)
        return x, y
    return collate


class BiLSTMTagger(nn.Module):
    def __init__(self, vocab_size, num_tags, emb=32, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, emb, padding_idx=0)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, num_tags)

    def forward(self, x):
        h, _ = self.lstm(self.emb(x))
        return self.out(h)


def main():
    torch.manual_seed(0)
    train, dev = sentences(500, 0), sentences(100, 1)
    vocab = Vocab(train)
    collate = make_collate(vocab)
    train_dl = DataLoader(train, batch_size=16, shuffle=True, collate_fn=collate)
    dev_dl = DataLoader(dev, batch_size=50, collate_fn=collate)

    model = BiLSTMTagger(len(vocab), NUM_TAGS)
    loss_fn = nn.CrossEntropyLoss(ignore_index=PAD_TAG)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(4):
        model.train()
        for x, y in train_dl:
            logits = model(x)
            loss = loss_fn(logits.reshape(-1, logits.size(-1)), y.reshape(-1))
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        hit = tot = 0
        with torch.no_grad():
            for x, y in dev_dl:
                keep = y != PAD_TAG
                hit += (model(x).argmax(-1)[keep] == y[keep]).sum().item()
                tot += keep.sum().item()
        print(f"epoch {epoch} loss {loss.item():.3f} dev acc {hit / tot:.3f}")


if __name__ == "__main__":
    main()
