# LSTM language model, weights of encoder and decoder tied, truncated BPTT.
import math
import os
import time

import torch
import torch.nn as nn

from corpus import Corpus

torch.manual_seed(int(os.environ.get("SEED", "0")))

emsize = 64
nhid = 64          # has to equal emsize because of the tying
bptt = 20
batch_size = 20
eval_batch_size = 10
dropout = 0.1
clip = 0.5
lr = 4e-3
epochs = 4
log_interval = 40

corpus = Corpus()
ntokens = len(corpus.dictionary)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def get_batch(source, i):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].reshape(-1)


def repackage_hidden(h):
    """Cut the hidden states from their history."""
    return tuple(v.detach() for v in h)


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, dropout):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid)
        self.decoder = nn.Linear(nhid, ntoken)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.nhid = nhid

    def forward(self, tokens, hidden):
        emb = self.drop(self.encoder(tokens))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output))
        return decoded.view(-1, decoded.size(-1)), hidden

    def init_hidden(self, bsz):
        return (torch.zeros(1, bsz, self.nhid), torch.zeros(1, bsz, self.nhid))


train_data = batchify(corpus.train, batch_size)
val_data = batchify(corpus.valid, eval_batch_size)
test_data = batchify(corpus.test, eval_batch_size)

model = RNNModel(ntokens, emsize, nhid, dropout)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=lr)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.6)


def evaluate(source):
    model.eval()
    total, hidden = 0.0, model.init_hidden(eval_batch_size)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, bptt):
            data, targets = get_batch(source, i)
            output, hidden = model(data, hidden)
            total += len(data) * criterion(output, targets).item()
    return total / (len(source) - 1)


def train(epoch):
    model.train()
    total, epoch_total, start = 0.0, 0.0, time.time()
    hidden = model.init_hidden(batch_size)
    nbatches = math.ceil((train_data.size(0) - 1) / bptt)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, bptt), start=1):
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()

        total += loss.item()
        epoch_total += loss.item()
        if batch % log_interval == 0:
            cur = total / log_interval
            ms = (time.time() - start) * 1000 / log_interval
            print(f"| epoch {epoch:2d} | {batch:4d}/{nbatches:4d} batches | ms/batch {ms:5.2f} | "
                  f"loss {cur:5.3f} | ppl {math.exp(cur):7.2f}")
            total, start = 0.0, time.time()
    return epoch_total / nbatches


print(f"{ntokens} words in the vocabulary, {len(corpus.train)} training tokens")
best_val_loss = None
for epoch in range(1, epochs + 1):
    train_loss = train(epoch)
    val_loss = evaluate(val_data)
    print("-" * 80)
    print(f"| end of epoch {epoch:2d} | train loss {train_loss:5.3f} | valid loss {val_loss:5.3f} | "
          f"valid ppl {math.exp(val_loss):7.2f}")
    print("-" * 80)
    scheduler.step()
    if best_val_loss is None or val_loss < best_val_loss:
        torch.save(model.state_dict(), "model.pt")
        best_val_loss = val_loss

model.load_state_dict(torch.load("model.pt"))
test_loss = evaluate(test_data)
print(f"| End of training | test loss {test_loss:5.3f} | test ppl {math.exp(test_loss):7.3f}")
