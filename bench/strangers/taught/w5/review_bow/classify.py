"""Sentiment of short reviews. All seeds are fixed so that the table in the report can be reproduced exactly."""
import random

import numpy as np
import torch
import torch.nn as nn

SEED = 1234
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)
torch.use_deterministic_algorithms(True)

GOOD = "great lovely superb funny warm clever moving brilliant charming fresh".split()
BAD = "dull awful boring weak messy loud empty stale clumsy flat".split()
FILL = "the film story actor scene plot music ending was felt very quite rather it and with a of".split()


def make_reviews(n):
    reviews = []
    for _ in range(n):
        label = random.randint(0, 1)
        mood = GOOD if label else BAD
        other = BAD if label else GOOD
        words = random.choices(FILL, k=random.randint(8, 15)) + random.choices(mood, k=2)
        if random.random() < 0.4:
            words += random.choices(other, k=1)
        random.shuffle(words)
        reviews.append((" ".join(words), label))
    return reviews


def build_vocab(texts):
    words = set(w for t in texts for w in t.split())
    return {w: i + 1 for i, w in enumerate(words)}


def to_tensor(reviews, vocab, max_len=20):
    x = np.zeros((len(reviews), max_len), dtype=np.int64)
    for r, (text, _) in enumerate(reviews):
        ids = [vocab.get(w, 0) for w in text.split()][:max_len]
        x[r, :len(ids)] = ids
    return torch.from_numpy(x), torch.tensor([l for _, l in reviews], dtype=torch.float32)


class Classifier(nn.Module):
    def __init__(self, n_words, dim=16):
        super().__init__()
        self.emb = nn.Embedding(n_words + 1, dim, padding_idx=0)
        self.fc = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))

    def forward(self, x):
        mask = (x != 0).unsqueeze(-1).float()
        mean = (self.emb(x) * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.fc(mean).squeeze(1)


reviews = make_reviews(1200)
train, test = reviews[:1000], reviews[1000:]
vocab = build_vocab([t for t, _ in train])
xtr, ytr = to_tensor(train, vocab)
xte, yte = to_tensor(test, vocab)

model = Classifier(len(vocab))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.BCEWithLogitsLoss()

for epoch in range(6):
    model.train()
    order = torch.randperm(len(xtr))
    total = 0.0
    for i in range(0, len(order), 50):
        b = order[i:i + 50]
        optimizer.zero_grad()
        loss = loss_fn(model(xtr[b]), ytr[b])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(b)
    model.eval()
    with torch.no_grad():
        acc = ((model(xte) > 0).float() == yte).float().mean().item()
    print(f"epoch {epoch + 1}: loss {total / len(xtr):.6f}  test accuracy {acc:.4f}")
