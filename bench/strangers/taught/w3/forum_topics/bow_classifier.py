"""Topic of forum posts, EmbeddingBag baseline. First deep learning project at work, feedback welcome :)"""
import random
import re
from collections import Counter

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

random.seed(4)
torch.manual_seed(4)

TOPICS = {
    "Garden": "Tomato Soil Compost Rake Seeds Roses Hedge Mulch Pruning Slugs".split(),
    "Bikes": "Derailleur Saddle Tyre Chain Spokes Helmet Gravel Brake Pedal Crank".split(),
    "Baking": "Flour Yeast Sourdough Oven Dough Crust Butter Sugar Proofing Rye".split(),
}
NAMES = list(TOPICS)
FILL = "I have a question about my and the new one is not very good, what can you recommend?".split()


def fake_post(topic):
    words = random.choices(FILL, k=12) + random.choices(TOPICS[topic], k=2) + random.choices(sum(TOPICS.values(), []), k=1)
    random.shuffle(words)
    return " ".join(words)


posts = [(fake_post(t), NAMES.index(t)) for t in random.choices(NAMES, k=1200)]
train_posts, val_posts = posts[:900], posts[900:]


def tokenize(s):
    return re.findall(r"[A-Za-z']+", s)


counts = Counter()
for text, _ in train_posts:
    counts.update(tokenize(text.lower()))
vocab = {"<unk>": 0}
for w, c in counts.most_common():
    if c >= 3:
        vocab[w] = len(vocab)


def encode(text):
    return torch.tensor([vocab.get(w, 0) for w in tokenize(text)])


def collate(batch):
    ids, labels = zip(*batch)
    offsets = torch.tensor([0] + [len(i) for i in ids[:-1]]).cumsum(0)
    return torch.cat(ids), offsets, torch.tensor(labels)


train_set = [(encode(text.lower()), y) for text, y in train_posts]
val_set = [(encode(text), y) for text, y in val_posts]
train_loader = DataLoader(train_set, batch_size=32, shuffle=True, collate_fn=collate)
val_loader = DataLoader(val_set, batch_size=100, collate_fn=collate)


class Bow(nn.Module):
    def __init__(self, n, d=32):
        super().__init__()
        self.emb = nn.EmbeddingBag(n, d, mode="mean")
        self.fc = nn.Linear(d, len(NAMES))

    def forward(self, ids, off):
        return self.fc(self.emb(ids, off))


net = Bow(len(vocab))
crit = nn.CrossEntropyLoss()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(8):
    net.train()
    good = seen = 0
    for ids, off, y in train_loader:
        opt.zero_grad()
        out = net(ids, off)
        loss = crit(out, y)
        loss.backward()
        opt.step()
        good += (out.argmax(1) == y).sum().item()
        seen += len(y)
    net.eval()
    vgood = 0
    with torch.no_grad():
        for ids, off, y in val_loader:
            vgood += (net(ids, off).argmax(1) == y).sum().item()
    print(f"epoch {epoch}: train acc {good / seen:.3f}, val acc {vgood / len(val_set):.3f}")
