"""
Teach a GRU encoder-decoder with attention to reverse strings of digits:  "48213" -> "31284"
"""
import argparse
import os
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from tqdm import tqdm

from model import Seq2Seq

PAD, BOS, EOS = 10, 11, 12      # 0..9 are the digits themselves
VOCAB = 13


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=48)
    p.add_argument("--lr", type=float, default=6e-3)
    p.add_argument("--emb", type=int, default=32)
    p.add_argument("--hidden", type=int, default=48)
    p.add_argument("--clip", type=float, default=1.0)
    p.add_argument("--n-train", type=int, default=2048)
    p.add_argument("--n-test", type=int, default=300)
    p.add_argument("--min-len", type=int, default=3)
    p.add_argument("--max-len", type=int, default=6)
    p.add_argument("--seed", type=int, default=int(os.environ.get("SEED", 0)))
    return p.parse_args()


def make_strings(n, lo, hi, rng, exclude=()):
    seen, out = set(exclude), []
    while len(out) < n:
        s = "".join(rng.choice("0123456789") for _ in range(rng.randint(lo, hi)))
        if s not in seen:
            seen.add(s)
            out.append(s)
    return out


def collate(strings):
    src = [torch.tensor([int(c) for c in s]) for s in strings]
    tgt = [torch.tensor([int(c) for c in reversed(s)]) for s in strings]
    bos, eos = torch.tensor([BOS]), torch.tensor([EOS])
    tgt_in = [torch.cat([bos, t]) for t in tgt]
    tgt_out = [torch.cat([t, eos]) for t in tgt]
    lengths = torch.tensor([len(s) for s in strings])
    pad = lambda seqs: pad_sequence(seqs, batch_first=True, padding_value=PAD)
    return pad(src), lengths, pad(tgt_in), pad(tgt_out)


def detok(ids):
    chars = []
    for i in ids:
        if i == EOS:
            break
        chars.append(str(i) if i < 10 else "?")
    return "".join(chars)


@torch.no_grad()
def evaluate(model, loader, criterion, max_len):
    """token-level loss under teacher forcing + exact match of free-running greedy decoding"""
    model.eval()
    loss_sum, n_tok, hits, total = 0.0, 0, 0, 0
    for src, src_len, tgt_in, tgt_out in loader:
        logits = model(src, src_len, tgt_in)
        k = (tgt_out != PAD).sum().item()
        loss_sum += criterion(logits.transpose(1, 2), tgt_out).item() * k
        n_tok += k

        guess = model.greedy(src, src_len, max_len + 1).tolist()
        for g, t in zip(guess, tgt_out.tolist()):
            hits += detok(g) == detok(t)
            total += 1
    return loss_sum / n_tok, hits / total


def main():
    args = get_args()
    torch.manual_seed(args.seed)

    test_strings = make_strings(args.n_test, args.min_len, args.max_len, random.Random(2024))
    # nothing of the test set may show up in training
    train_strings = make_strings(
        args.n_train, args.min_len, args.max_len, random.Random(args.seed), exclude=test_strings
    )
    train_loader = DataLoader(train_strings, args.batch_size, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(test_strings, 150, collate_fn=collate)

    model = Seq2Seq(VOCAB, args.emb, args.hidden, PAD, BOS)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.7)

    for epoch in range(1, args.epochs + 1):
        model.train()
        epoch_loss = 0.0
        bar = tqdm(train_loader, desc=f"epoch {epoch}", leave=False, mininterval=0.5)
        for src, src_len, tgt_in, tgt_out in bar:
            optimizer.zero_grad()
            logits = model(src, src_len, tgt_in)
            loss = criterion(logits.transpose(1, 2), tgt_out)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            epoch_loss += loss.item()
            bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        scheduler.step()

        test_loss, em = evaluate(model, test_loader, criterion, args.max_len)
        print(f"Epoch {epoch}: train loss {epoch_loss / len(train_loader):.4f} | "
              f"test loss {test_loss:.4f} | exact match {em:.4f}")
        torch.save(
            {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
             "args": vars(args)},
            "last.pt",
        )

    # a few examples to look at
    src, src_len, _, _ = collate(test_strings[:3])
    model.eval()
    for s, g in zip(test_strings[:3], model.greedy(src, src_len, args.max_len + 1).tolist()):
        print(f"  {s} -> {detok(g)}")
    print(f"Final exact match: {em:.4f}")


if __name__ == "__main__":
    main()
