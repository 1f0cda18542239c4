"""Pitch contour regression with per-utterance normalised hidden features."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def standardise(features, dim, eps=1e-5):
    """Zero mean, unit deviation along dim."""
    features = features - features.mean(dim, keepdim=True)
    deviation = features.std(dim, keepdim=True)
    features /= deviation + eps
    return features


class ProsodyModel(nn.Module):
    def __init__(self, n_phones, speakers, hidden=40):
        super().__init__()
        self.phones = nn.Embedding(n_phones, hidden)
        self.speaker = nn.Embedding(speakers, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.gain = nn.Parameter(torch.ones(2 * hidden))
        self.out = nn.Linear(2 * hidden, 1)

    def forward(self, phones, speaker):
        x = self.phones(phones) + self.speaker(speaker).unsqueeze(1)
        h, _ = self.rnn(x)
        h = standardise(h, dim=1) * self.gain
        return self.out(torch.tanh(h)).squeeze(-1)


def corpus(n, length=25, n_phones=40, speakers=6, seed=0):
    g = torch.Generator().manual_seed(seed)
    phones = torch.randint(n_phones, (n, length), generator=g)
    speaker = torch.randint(speakers, (n,), generator=g)
    local = torch.sin(phones.float()) + 0.5 * torch.sin(phones.roll(1, 1).float())
    declination = torch.linspace(0.5, -0.5, length)
    pitch = local * (1 + 0.2 * speaker.float().unsqueeze(1)) + declination
    return TensorDataset(phones, speaker, pitch)


def correlation(model, loader):
    model.eval()
    p, t = [], []
    with torch.no_grad():
        for phones, speaker, pitch in loader:
            p.append(model(phones, speaker).flatten())
            t.append(pitch.flatten())
    return torch.corrcoef(torch.stack([torch.cat(p), torch.cat(t)]))[0, 1].item()


def train():
    torch.manual_seed(9)
    data = DataLoader(corpus(400, seed=1), batch_size=25, shuffle=True)
    held_out = DataLoader(corpus(100, seed=2), batch_size=50)
    model = ProsodyModel(40, 6)
    optimiser = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    for epoch in range(4):
        model.train()
        for phones, speaker, pitch in data:
            error = nn.functional.l1_loss(model(phones, speaker), pitch)
            optimiser.zero_grad()
            error.backward()
            nn.utils.clip_grad_value_(model.parameters(), 1.0)
            optimiser.step()
        print(f"epoch {epoch}: L1 {error.item():.3f}, correlation {correlation(model, held_out):.3f}")


if __name__ == "__main__":
    train()
