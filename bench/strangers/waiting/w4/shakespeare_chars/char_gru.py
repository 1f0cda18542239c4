"""
Character level model with state carried over the whole text (contiguous batches).
usage: python char_gru.py [input.txt]
"""
import sys
import torch
import torch.nn as nn

SEQ, BATCH, HID, EMB = 32, 16, 128, 32
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1337)

if len(sys.argv) > 1:
    text = open(sys.argv[1], encoding="utf8").read()
else:
    text = "to be, or not to be, that is the question: whether 'tis nobler in the mind to suffer\n" * 400

chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
ids = torch.tensor([stoi[c] for c in text])
n_train = int(0.9 * len(ids))


def contiguous(data):
    """[T] -> [BATCH, T // BATCH], every row is one long stream"""
    n = len(data) // BATCH
    return data[: n * BATCH].view(BATCH, n)


def windows(stream):
    for i in range(0, stream.size(1) - SEQ - 1, SEQ):
        yield stream[:, i:i + SEQ].to(device), stream[:, i + 1:i + SEQ + 1].to(device)


class CharGRU(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.emb = nn.Embedding(vocab, EMB)
        self.gru = nn.GRU(EMB, HID, batch_first=True)
        self.out = nn.Linear(HID, vocab)
        self.memory = None

    def reset_memory(self):
        self.memory = None

    def forward(self, x):
        h, self.memory = self.gru(self.emb(x), self.memory)
        return self.out(h)


model = CharGRU(len(chars)).to(device)
optim = torch.optim.Adam(model.parameters(), lr=2e-3)
crit = nn.CrossEntropyLoss()
train_stream, val_stream = contiguous(ids[:n_train]), contiguous(ids[n_train:])

for epoch in range(5):
    model.train()
    model.reset_memory()
    for step, (xb, yb) in enumerate(windows(train_stream)):
        logits = model(xb)
        loss = crit(logits.reshape(-1, len(chars)), yb.reshape(-1))
        optim.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        if step % 50 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.3f}")

    model.eval()
    model.reset_memory()
    with torch.no_grad():
        ls = [crit(model(xb).reshape(-1, len(chars)), yb.reshape(-1)).item() for xb, yb in windows(val_stream)]
    print(f"== epoch {epoch} val {sum(ls) / len(ls):.3f}")
