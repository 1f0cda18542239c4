"""Purchase prediction from click sessions (transformer encoder with a summary token)."""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

N_EVENTS = 30          # event types, 1..N_EVENTS; 0 is padding
MAX_EVENTS = 20        # sessions are cut to the most recent events


class Sessions(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.sessions, self.bought = [], []
        for _ in range(n):
            length = int(torch.randint(5, 40, (1,), generator=g))
            s = torch.randint(1, N_EVENTS + 1, (length,), generator=g)
            recent = s[-MAX_EVENTS:]
            label = ((recent == 3).any() | (recent == 17).any()) & (recent[-1] > 8)
            self.sessions.append(s)
            self.bought.append(float(label))

    def __len__(self):
        return len(self.sessions)

    def __getitem__(self, i):
        return self.sessions[i][-MAX_EVENTS:], self.bought[i]


def collate(batch):
    seqs, labels = zip(*batch)
    return pad_sequence(seqs, batch_first=True), torch.tensor(labels)


class EventEmbedding(nn.Module):
    def __init__(self, n_events, max_events, dim):
        super().__init__()
        self.event = nn.Embedding(n_events + 1, dim, padding_idx=0)
        self.position = nn.Embedding(max_events, dim)
        self.summary = nn.Parameter(torch.zeros(1, 1, dim))

    def forward(self, ids):
        h = torch.cat([self.summary.expand(len(ids), -1, -1), self.event(ids)], dim=1)
        steps = torch.arange(h.size(1), device=ids.device)
        return h + self.position(steps)


class SessionModel(nn.Module):
    def __init__(self, dim=32, heads=4, layers=2):
        super().__init__()
        self.embed = EventEmbedding(N_EVENTS, MAX_EVENTS, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 1)

    def forward(self, ids):
        keep = torch.ones(len(ids), 1, dtype=torch.bool, device=ids.device)
        padding = ~torch.cat([keep, ids != 0], dim=1)
        h = self.encoder(self.embed(ids), src_key_padding_mask=padding)
        return self.out(h[:, 0]).squeeze(-1)


def evaluate(model, loader):
    model.eval()
    right = n = 0
    with torch.no_grad():
        for ids, y in loader:
            right += ((model(ids) > 0) == (y > 0.5)).sum().item()
            n += len(y)
    return right / n


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader = DataLoader(Sessions(800, 1), 40, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(Sessions(200, 2), 100, collate_fn=collate)
    model = SessionModel().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(4):
        model.train()
        for ids, y in train_loader:
            loss = loss_fn(model(ids.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {evaluate(model, test_loader):.3f}")
