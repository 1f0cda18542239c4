import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(3)
VOCAB, STREAMS, CHUNK = 12, 16, 20


def melody(n, seed):
    """second order process: the next note depends on the two before"""
    g = torch.Generator().manual_seed(seed)
    notes = [1, 3]
    jump = torch.rand(n, generator=g)
    for i in range(n - 2):
        nxt = (2 * notes[-1] + notes[-2] + 1) % VOCAB
        notes.append(nxt if jump[i] < 0.85 else int(jump[i] * 1e4) % VOCAB)
    return torch.tensor(notes)


class ChunkedStreams(Dataset):
    """item k holds the k-th chunk of all STREAMS parallel streams, so the items must be read in order"""

    def __init__(self, notes):
        per = (len(notes) - 1) // STREAMS
        self.inp = notes[:per * STREAMS].view(STREAMS, per)
        self.out = notes[1:per * STREAMS + 1].view(STREAMS, per)

    def __len__(self):
        return self.inp.size(1) // CHUNK

    def __getitem__(self, k):
        s = slice(k * CHUNK, (k + 1) * CHUNK)
        return self.inp[:, s], self.out[:, s]


class NoteLM(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.proj = nn.Linear(dim, VOCAB, bias=False)
        self.proj.weight = self.emb.weight

    def forward(self, notes, state):
        h, state = self.lstm(self.emb(notes), state)
        return self.proj(h), state


def sweep(model, loader, opt=None):
    state, nll, count = None, 0.0, 0
    for inp, out in loader:
        inp, out = inp[0], out[0]
        logits, state = model(inp, state)
        loss = nn.functional.cross_entropy(logits.reshape(-1, VOCAB), out.reshape(-1))
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        state = tuple(s.detach() for s in state)
        nll += loss.item() * out.numel()
        count += out.numel()
    return nll / count


train = DataLoader(ChunkedStreams(melody(16000, 1)), batch_size=1, shuffle=False)
valid = DataLoader(ChunkedStreams(melody(4000, 2)), batch_size=1, shuffle=False)
model = NoteLM()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    tr = sweep(model, train, opt)
    model.eval()
    with torch.no_grad():
        va = sweep(model, valid)
    print(f"epoch {epoch}: train perplexity {2.718281828 ** tr:.2f}, valid perplexity {2.718281828 ** va:.2f}")
