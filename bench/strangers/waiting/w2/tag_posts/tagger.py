"""Predict tags for forum posts. A post usually carries 1-4 tags out of TAGS."""
import random
from collections import Counter

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

TAGS = ["python", "pandas", "sql", "docker", "linux", "css"]
KEYWORDS = {
    "python": ["list", "dict", "lambda", "import", "venv"],
    "pandas": ["dataframe", "groupby", "merge", "index", "csv"],
    "sql": ["select", "join", "where", "table", "query"],
    "docker": ["container", "image", "compose", "volume", "port"],
    "linux": ["bash", "grep", "sudo", "cron", "ssh"],
    "css": ["flex", "grid", "margin", "hover", "div"],
}
FILLER = "how do i fix this please help error when using my code with the new version".split()


def make_posts(n, seed):
    rng = random.Random(seed)
    posts = []
    for _ in range(n):
        tags = rng.sample(TAGS, rng.choice([1, 1, 2, 2, 3, 4]))
        words = [rng.choice(KEYWORDS[t]) for t in tags for _ in range(2)]
        words += rng.choices(FILLER, k=8)
        rng.shuffle(words)
        posts.append((" ".join(words), tags))
    return posts


def build_vocab(posts):
    counts = Counter(w for text, _ in posts for w in text.split())
    return {w: i for i, w in enumerate(["<pad>", "<unk>"] + sorted(counts))}


class Posts(Dataset):
    def __init__(self, posts, vocab):
        self.posts, self.vocab = posts, vocab

    def __len__(self):
        return len(self.posts)

    def __getitem__(self, i):
        text, tags = self.posts[i]
        ids = torch.tensor([self.vocab.get(w, 1) for w in text.split()])
        target = torch.zeros(len(TAGS))
        for t in tags:
            target[TAGS.index(t)] = 1.0
        return ids, target


def collate(batch):
    ids, targets = zip(*batch)
    return nn.utils.rnn.pad_sequence(ids, batch_first=True), torch.stack(targets)


class Tagger(nn.Module):
    def __init__(self, n_words, n_tags, dim=32):
        super().__init__()
        self.emb = nn.EmbeddingBag(n_words, dim, mode="mean", padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, n_tags))

    def forward(self, ids):
        return self.mlp(self.emb(ids))


def evaluate(model, loader, threshold=0.5):
    model.eval()
    tp = fp = fn = 0
    with torch.no_grad():
        for ids, target in loader:
            pred = torch.sigmoid(model(ids)) > threshold
            gold = target.bool()
            tp += (pred & gold).sum().item()
            fp += (pred & ~gold).sum().item()
            fn += (~pred & gold).sum().item()
    return 2 * tp / (2 * tp + fp + fn)


def main():
    torch.manual_seed(1)
    train, test = make_posts(2000, 0), make_posts(400, 99)
    vocab = build_vocab(train)
    train_dl = DataLoader(Posts(train, vocab), batch_size=32, shuffle=True, collate_fn=collate)
    test_dl = DataLoader(Posts(test, vocab), batch_size=128, collate_fn=collate)

    model = Tagger(len(vocab), len(TAGS))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    for epoch in range(8):
        model.train()
        total = 0
        for ids, target in train_dl:
            loss = criterion(model(ids), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss={total / len(train_dl):.3f} micro-F1={evaluate(model, test_dl):.3f}")


if __name__ == "__main__":
    main()
