import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

WORDS = ["yes", "no", "stop", "go"]
SR, DUR = 4000, 0.5


def synth_word(label, rng):
    """stand-in until the recordings are cleaned up"""
    n = int(SR * DUR)
    sig = rng.normal(0, 0.3, n)
    at = rng.integers(200, n - 700)
    t = np.arange(500) / SR
    f0, f1 = [(300, 900), (900, 300), (600, 600), (300, 300)][label]
    sig[at:at + 500] += np.sin(2 * np.pi * (f0 * t + (f1 - f0) * t ** 2 / (2 * t[-1])))
    return sig.astype(np.float32)


class Clips(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(0, len(WORDS), n)
        self.x = [torch.from_numpy(synth_word(c, rng)) for c in self.y]
        self.window = torch.hann_window(128)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        spec = torch.stft(self.x[i], 128, 64, window=self.window, return_complex=True).abs()
        return torch.log1p(spec).t(), int(self.y[i])


class AdditiveAttention(nn.Module):
    def __init__(self, dim, att=32):
        super().__init__()
        self.proj = nn.Linear(dim, att)
        self.score = nn.Linear(att, 1, bias=False)

    def forward(self, h):
        w = torch.softmax(self.score(torch.tanh(self.proj(h))), dim=1)
        return (w * h).sum(1), w.squeeze(-1)


class KeywordNet(nn.Module):
    def __init__(self, n_bins=65, hidden=32):
        super().__init__()
        self.norm = nn.LayerNorm(n_bins)
        self.gru = nn.GRU(n_bins, hidden, batch_first=True, bidirectional=True)
        self.attention = AdditiveAttention(2 * hidden)
        self.fc = nn.Sequential(nn.Linear(2 * hidden, 32), nn.ReLU(), nn.Linear(32, len(WORDS)))

    def forward(self, spec):
        h, _ = self.gru(self.norm(spec))
        context, weights = self.attention(h)
        logits = self.fc(h[:, -1])
        return logits, weights


def evaluate(net, loader):
    net.eval()
    ok = 0
    with torch.no_grad():
        for x, y in loader:
            logits, _ = net(x)
            ok += (logits.argmax(1) == y).sum().item()
    return ok / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    train = DataLoader(Clips(800, 0), 32, shuffle=True)
    val = DataLoader(Clips(200, 1), 100)
    net = KeywordNet()
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    for ep in range(8):
        net.train()
        s = 0.0
        for x, y in train:
            logits, _ = net(x)
            loss = loss_fn(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            s += loss.item()
        print(f"ep {ep} loss {s / len(train):.3f} acc {evaluate(net, val):.3f}")
