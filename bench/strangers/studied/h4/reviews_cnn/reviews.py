import random
from collections import Counter

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(1)
torch.manual_seed(1)

POS = "great lovely superb crisp warm clever moving honest".split()
NEG = "dull awful bland noisy weak clumsy boring stale".split()
NEUTRAL = ("film plot actor scene music camera story ending script light the a of with and very rather "
           "quite it was felt seemed").split()
MAXLEN = 16


def write_review(label):
    words = random.choices(NEUTRAL, k=random.randint(7, 12))
    words += random.choices(POS if label else NEG, k=2)
    if random.random() < 0.4:
        words += random.choices(NEG if label else POS, k=1)
    random.shuffle(words)
    return " ".join(words)


def corpus(n):
    labels = [random.randint(0, 1) for _ in range(n)]
    return [write_review(l) for l in labels], labels


def vectorize(texts, max_words=64):
    """texts -> padded id matrix (most frequent words get the lowest ids, 0 = pad, 1 = unknown)"""
    counts = Counter(w for t in texts for w in t.split())
    index = {w: i + 2 for i, (w, _) in enumerate(counts.most_common(max_words - 2))}
    rows = []
    for t in texts:
        ids = [index.get(w, 1) for w in t.split()][:MAXLEN]
        rows.append(ids + [0] * (MAXLEN - len(ids)))
    return torch.tensor(rows)


def make_loader(texts, labels, shuffle):
    return DataLoader(TensorDataset(vectorize(texts), torch.tensor(labels, dtype=torch.float32)),
                      batch_size=32, shuffle=shuffle)


class KimCNN(nn.Module):
    def __init__(self, vocab=64, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(dim, 16, k, padding=k // 2) for k in (1, 3)])
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(32, 1)

    def forward(self, ids):
        e = self.emb(ids).transpose(1, 2)
        pooled = [torch.relu(c(e)).amax(2) for c in self.convs]
        return self.out(self.drop(torch.cat(pooled, 1))).squeeze(1)


train_loader = make_loader(*corpus(1000), shuffle=True)
dev_loader = make_loader(*corpus(300), shuffle=False)

model = KimCNN()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
bce = nn.BCEWithLogitsLoss()


def run(loader, training):
    model.train(training)
    n = good = 0
    total = 0.0
    with torch.set_grad_enabled(training):
        for ids, lab in loader:
            out = model(ids)
            loss = bce(out, lab)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(lab)
            good += ((out > 0).float() == lab).sum().item()
            n += len(lab)
    return total / n, good / n


for epoch in range(1, 9):
    tl, ta = run(train_loader, True)
    dl, da = run(dev_loader, False)
    print(f"epoch {epoch}: train {tl:.3f}/{ta:.3f}   dev {dl:.3f}/{da:.3f}")
