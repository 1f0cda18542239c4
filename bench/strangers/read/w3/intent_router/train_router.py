import random

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader

from heads import build_head

INTENTS = {
    "refund": "money back refund return charge",
    "shipping": "parcel delivery late courier track",
    "login": "password account reset sign email",
    "cancel": "stop subscription cancel end plan",
}
FILLER = "please hello my the i want to with is not help you can".split()
VOCAB = {w: i + 1 for i, w in enumerate(sorted({w for s in INTENTS.values() for w in s.split()} | set(FILLER)))}


def sentences(n, seed):
    rnd = random.Random(seed)
    rows = []
    for _ in range(n):
        k = rnd.randrange(len(INTENTS))
        keys = list(INTENTS.values())[k].split()
        words = [rnd.choice(keys)] + rnd.choices(FILLER, k=rnd.randint(3, 8))
        rnd.shuffle(words)
        rows.append(([VOCAB[w] for w in words], k))
    return rows


def collate(rows):
    flat = torch.tensor([t for ids, _ in rows for t in ids])
    starts = torch.tensor([0] + [len(ids) for ids, _ in rows[:-1]]).cumsum(0)
    return flat, starts, torch.tensor([k for _, k in rows])


class Router(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab + 1, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.GELU())
        self.head = build_head(dim, len(INTENTS), task="multiclass")

    def forward(self, tokens, starts):
        return self.head(self.mlp(self.bag(tokens, starts)))


def main():
    set_seed(12)
    accelerator = Accelerator(cpu=True)
    train_dl = DataLoader(sentences(800, 0), batch_size=32, shuffle=True, collate_fn=collate)
    val_dl = DataLoader(sentences(200, 1), batch_size=50, collate_fn=collate)
    model = Router(len(VOCAB))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model, optimizer, train_dl, val_dl = accelerator.prepare(model, optimizer, train_dl, val_dl)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.02)
    for epoch in range(6):
        model.train()
        total = 0.0
        for tokens, starts, intent in train_dl:
            loss = criterion(model(tokens, starts), intent)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
        model.eval()
        hits = count = 0
        for tokens, starts, intent in val_dl:
            with torch.no_grad():
                pred = model(tokens, starts).argmax(-1)
            pred, intent = accelerator.gather_for_metrics((pred, intent))
            hits += (pred == intent).sum().item()
            count += len(intent)
        accelerator.print(f"epoch {epoch} loss {total / len(train_dl):.4f} acc {hits / count:.4f}")


if __name__ == "__main__":
    main()
