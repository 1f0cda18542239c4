import argparse
import time

import torch
import torch.nn as nn

import data
from model import RNNModel

parser = argparse.ArgumentParser(description="word level language model")
parser.add_argument("--emsize", type=int, default=48)
parser.add_argument("--nhid", type=int, default=48)
parser.add_argument("--nlayers", type=int, default=2)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--batch_size", type=int, default=20)
parser.add_argument("--bptt", type=int, default=20)
parser.add_argument("--tied", action="store_true")
parser.add_argument("--seed", type=int, default=1111)
args = parser.parse_args()

torch.manual_seed(args.seed)
corpus = data.Corpus()
ntokens = len(corpus.dictionary)
train_data = data.batchify(corpus.train, args.batch_size)
val_data = data.batchify(corpus.valid, 10)

model = RNNModel(ntokens, args.emsize, args.nhid, args.nlayers, tie_weights=args.tied)
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)


def repackage_hidden(h):
    return tuple(v.detach() for v in h)


def evaluate(source):
    model.eval()
    total = 0.0
    hidden = model.init_hidden(10)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            x, y = data.get_batch(source, i, args.bptt)
            output, hidden = model(x, hidden)
            total += len(x) * criterion(output, y).item()
    return total / (len(source) - 1)


def train():
    model.train()
    hidden = model.init_hidden(args.batch_size)
    for i in range(0, train_data.size(0) - 1, args.bptt):
        x, y = data.get_batch(train_data, i, args.bptt)
        optimizer.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(x, hidden)
        loss = criterion(output, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()


for epoch in range(1, args.epochs + 1):
    t0 = time.time()
    train()
    print(f"| epoch {epoch:2d} | {time.time() - t0:5.1f}s | valid loss {evaluate(val_data):8.3f}")

words = model.sample(corpus.dictionary.word2idx["the"], 15)
print(" ".join(corpus.dictionary.idx2word[w] for w in words))
