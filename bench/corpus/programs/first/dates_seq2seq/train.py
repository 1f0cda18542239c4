import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
from data import PAD, SOURCE_VOCAB, TARGET_VOCAB, collate, make_splits
from model import Seq2Seq
from torch.utils.data import DataLoader

N_EPOCHS = 6
CLIP = 1.0


def train(model, iterator, optimizer, criterion, clip):
    model.train()
    epoch_loss = 0
    for src, trg in iterator:
        optimizer.zero_grad()
        output = model(src, trg[:, :-1])
        loss = criterion(output.reshape(-1, TARGET_VOCAB), trg[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        epoch_loss += loss.item()
    return epoch_loss / len(iterator)


def evaluate(model, iterator, criterion):
    model.eval()
    epoch_loss, exact, right_chars, chars, total = 0, 0, 0, 0, 0
    with torch.no_grad():
        for src, trg in iterator:
            output = model(src, trg[:, :-1])
            gold = trg[:, 1:]
            epoch_loss += criterion(output.reshape(-1, TARGET_VOCAB), gold.reshape(-1)).item()
            guess = model.greedy(src, gold.size(1))
            right_chars += (guess == gold).sum().item()
            chars += gold.numel()
            exact += (guess == gold).all(dim=1).sum().item()
            total += len(src)
    return epoch_loss / len(iterator), right_chars / chars, exact / total


def main():
    seed = int(os.environ.get("SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

    train_set, val_set = make_splits(seed)
    train_iter = DataLoader(train_set, batch_size=64, shuffle=True, collate_fn=collate)
    val_iter = DataLoader(val_set, batch_size=128, collate_fn=collate)

    model = Seq2Seq(SOURCE_VOCAB, TARGET_VOCAB)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)

    print(f"{'Epoch':>5} {'Time':>6} {'Train':>8} {'Val':>8} {'Chars':>7} {'Exact':>7}")
    print("-" * 46)
    for epoch in range(1, N_EPOCHS + 1):
        started = time.time()
        train_loss = train(model, train_iter, optimizer, criterion, CLIP)
        val_loss, char_acc, exact = evaluate(model, val_iter, criterion)
        seconds = time.time() - started
        print(
            f"{epoch:>5} {seconds:>5.1f}s {train_loss:>8.4f} {val_loss:>8.4f} "
            f"{char_acc:>7.4f} {exact:>7.4f}"
        )


if __name__ == "__main__":
    main()
