"""Routing of IT tickets. Few labels (300), so we regularise hard: dropout 0.4 everywhere.

Usage: python train_tickets.py --dropout 0.4 --label-smoothing 0.1
"""
import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

QUEUES = ["network", "hardware", "accounts"]


def cli():
    ap = argparse.ArgumentParser()
    ap.add_argument("--checkpoint", default=None)
    ap.add_argument("--dropout", type=float, default=0.4)
    ap.add_argument("--label-smoothing", type=float, default=0.1)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--batch-size", type=int, default=20)
    ap.add_argument("--seed", type=int, default=0)
    return ap.parse_args()


def build_model(args):
    if args.checkpoint:
        model = BertForSequenceClassification.from_pretrained(args.checkpoint, num_labels=len(QUEUES))
    else:
        model = BertForSequenceClassification(BertConfig(
            vocab_size=600, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
            max_position_embeddings=40, num_labels=len(QUEUES)))
    model.config.hidden_dropout_prob = args.dropout
    model.config.attention_probs_dropout_prob = args.dropout
    model.config.classifier_dropout = args.dropout
    model.config.id2label = dict(enumerate(QUEUES))
    return model


def tickets(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, len(QUEUES), (n,), generator=g)
    ids = torch.randint(100, 600, (n, 24), generator=g)
    for i in range(n):
        at = torch.randperm(24, generator=g)[:4]
        ids[i, at] = 5 + 30 * y[i] + torch.randint(0, 30, (4,), generator=g)
    return TensorDataset(ids, y)


def run(args):
    torch.manual_seed(args.seed)
    model = build_model(args)
    print("dropout:", model.config.hidden_dropout_prob)
    train = DataLoader(tickets(300, 0), args.batch_size, shuffle=True)
    dev = DataLoader(tickets(300, 1), 150)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    steps = args.epochs * len(train)
    sched = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=steps)
    best = (0.0, -1)
    for epoch in range(args.epochs):
        model.train()
        tot = 0.0
        for ids, y in train:
            logits = model(input_ids=ids).logits
            loss = F.cross_entropy(logits, y, label_smoothing=args.label_smoothing)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            sched.step()
            tot += loss.item()
        model.eval()
        with torch.no_grad():
            acc = sum((model(input_ids=i).logits.argmax(-1) == y).sum().item() for i, y in dev) / 300
        best = max(best, (acc, epoch))
        print(f"{epoch:2d} loss {tot / len(train):.4f} dev acc {acc:.3f}")
    print("best", best)


if __name__ == "__main__":
    run(cli())
