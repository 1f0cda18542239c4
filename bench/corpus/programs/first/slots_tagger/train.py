"""BiLSTM slot tagger for short travel requests."""

import logging
import os
import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader

logger = logging.getLogger(__name__)

CITIES = ["paris", "oslo", "lima", "quito", "delhi", "osaka", "cairo", "perth"]
DAYS = ["monday", "tuesday", "friday", "today", "tomorrow"]
AIRLINES = ["iberia", "finnair", "delta", "qantas"]
FILLERS = ["please", "um", "well", "and", "maybe"]
TEMPLATES = [
    "fly from FROM to TO on DAY",
    "to TO from FROM with AIRLINE",
    "i am in FROM and need to be in TO by DAY",
    "DAY from FROM with AIRLINE to TO",
    "book AIRLINE to TO DAY",
    "is there a AIRLINE seat from FROM DAY",
]
SLOTS = {"FROM": CITIES, "TO": CITIES, "DAY": DAYS, "AIRLINE": AIRLINES}
TAG_TO_ID = {"O": 0, "FROM": 1, "TO": 2, "DAY": 3, "AIRLINE": 4}
PAD_TAG = -100


def misspell(word, rng):
    i = rng.randrange(len(word))
    return word[:i] + word[i + 1 :]


def generate(n, rng):
    samples = []
    for _ in range(n):
        words, tags = [], []
        for token in rng.choice(TEMPLATES).split():
            if rng.random() < 0.15:
                words.append(rng.choice(FILLERS))
                tags.append("O")
            word = rng.choice(SLOTS[token]) if token in SLOTS else token
            words.append(misspell(word, rng) if rng.random() < 0.1 else word)
            tags.append(token if token in SLOTS else "O")
        samples.append((words, tags))
    return samples


def build_vocab(samples):
    vocab = {"<pad>": 0, "<unk>": 1}
    for words, _ in samples:
        for word in words:
            vocab.setdefault(word, len(vocab))
    return vocab


def make_collate(vocab):
    def collate(batch):
        words = [torch.tensor([vocab.get(w, 1) for w in ws]) for ws, _ in batch]
        tags = [torch.tensor([TAG_TO_ID[t] for t in ts]) for _, ts in batch]
        lengths = torch.tensor([len(w) for w in words])
        return (
            pad_sequence(words, batch_first=True),
            pad_sequence(tags, batch_first=True, padding_value=PAD_TAG),
            lengths,
        )

    return collate


class BiLSTMTagger(nn.Module):
    def __init__(self, vocab_size, n_tags, embed_dim=24, hidden_dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, embed_dim, padding_idx=0)
        self.dropout = nn.Dropout(0.1)
        self.lstm = nn.LSTM(embed_dim, hidden_dim, batch_first=True, bidirectional=True)
        self.hidden2tag = nn.Linear(2 * hidden_dim, n_tags)

    def forward(self, words, lengths):
        emb = self.dropout(self.embed(words))
        packed = pack_padded_sequence(emb, lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.hidden2tag(out)


def slot_f1(model, loader):
    model.eval()
    tp = fp = fn = 0
    with torch.no_grad():
        for words, tags, lengths in loader:
            pred = model(words, lengths).argmax(-1)
            real = tags != PAD_TAG
            tp += ((pred == tags) & (tags > 0)).sum().item()
            fp += ((pred != tags) & (pred > 0) & real).sum().item()
            fn += ((pred != tags) & (tags > 0)).sum().item()
    return 2 * tp / max(2 * tp + fp + fn, 1)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(levelname)s - %(message)s")
    seed = int(os.environ.get("SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

    rng = random.Random(seed)
    train_samples, dev_samples = generate(1216, rng), generate(300, rng)
    vocab = build_vocab(train_samples)
    collate = make_collate(vocab)
    train_loader = DataLoader(train_samples, batch_size=16, shuffle=True, collate_fn=collate)
    dev_loader = DataLoader(dev_samples, batch_size=100, collate_fn=collate)

    model = BiLSTMTagger(len(vocab), len(TAG_TO_ID))
    loss_fn = nn.CrossEntropyLoss(ignore_index=PAD_TAG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    num_epochs, accumulation_steps, warmup = 4, 2, 15
    total_updates = num_epochs * len(train_loader) // accumulation_steps

    def lr_lambda(step):
        if step < warmup:
            return (step + 1) / warmup
        return max(0.0, (total_updates - step) / (total_updates - warmup))

    scheduler = LambdaLR(optimizer, lr_lambda)

    for epoch in range(1, num_epochs + 1):
        model.train()
        tr_loss = 0.0
        optimizer.zero_grad()
        for step, (words, tags, lengths) in enumerate(train_loader, start=1):
            logits = model(words, lengths)
            loss = loss_fn(logits.flatten(0, 1), tags.flatten())
            (loss / accumulation_steps).backward()
            tr_loss += loss.item()
            if step % accumulation_steps == 0 or step == len(train_loader):
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        logger.info(
            "Epoch %d: loss = %.4f, dev slot F1 = %.4f",
            epoch,
            tr_loss / len(train_loader),
            slot_f1(model, dev_loader),
        )


if __name__ == "__main__":
    main()
