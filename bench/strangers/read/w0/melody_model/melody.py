import torch
from torch import nn

NOTES = 12
STREAMS, CHUNK = 16, 20


def compose(length, seed):
    """Second-order rule with occasional surprises."""
    g = torch.Generator().manual_seed(seed)
    a, b, out = 0, 4, []
    for _ in range(length):
        if torch.rand(1, generator=g) < 0.1:
            c = int(torch.randint(NOTES, (1,), generator=g))
        else:
            c = (2 * a + b + 1) % NOTES
        out.append(c)
        a, b = b, c
    return torch.tensor(out)


def streams(seq, n):
    usable = (len(seq) - 1) // n * n
    return seq[:usable].view(n, -1), seq[1:usable + 1].view(n, -1)


class MelodyModel(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.note = nn.Embedding(NOTES, dim)
        self.rnn = nn.LSTM(dim, dim, num_layers=2, batch_first=True, dropout=0.1)
        self.next = nn.Linear(dim, NOTES)

    def forward(self, x, state=None):
        h, state = self.rnn(self.note(x), state)
        return self.next(h), state


def cut(state):
    return tuple(s.detach() for s in state)


def run_through(model, x, y, optimizer=None):
    state, total, count = None, 0.0, 0
    for start in range(0, x.shape[1], CHUNK):
        xb, yb = x[:, start:start + CHUNK], y[:, start:start + CHUNK]
        logits, state = model(xb, state)
        loss = nn.functional.cross_entropy(logits.reshape(-1, NOTES), yb.reshape(-1))
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        state = cut(state)
        total += loss.item() * yb.numel()
        count += yb.numel()
    return total / count


if __name__ == "__main__":
    torch.manual_seed(24)
    train, valid = streams(compose(8000, 1), STREAMS), streams(compose(1200, 2), 4)
    model = MelodyModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    for epoch in range(8):
        model.train()
        fit = run_through(model, *train, optimizer)
        model.eval()
        with torch.no_grad():
            held = run_through(model, *valid)
        print(f"epoch {epoch} train {fit:.3f} valid {held:.3f}")
