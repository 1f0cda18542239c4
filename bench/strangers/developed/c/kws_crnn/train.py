import itertools
import torch, torch.nn as nn
from torch.optim.lr_scheduler import MultiStepLR

WORDS = ["yes", "no", "up", "down"]


def chirps(batch, gen, sr=2000, dur=0.5):
    """Endless stream of (waveform, word id): every word is a pair of tones, one after the other."""
    n = int(sr * dur)
    t = torch.arange(n) / sr
    tones = torch.tensor([[200., 500.], [500., 200.], [300., 700.], [700., 300.]])
    while True:
        y = torch.randint(len(WORDS), (batch,), generator=gen)
        f = tones[y] * (1 + 0.03 * torch.randn(batch, 2, generator=gen))
        cut = n // 2 + torch.randint(-100, 100, (batch, 1), generator=gen)
        late = (torch.arange(n) >= cut).float()
        freq = f[:, :1] * (1 - late) + f[:, 1:] * late
        wav = torch.sin(2 * torch.pi * freq * t) + 0.3 * torch.randn(batch, n, generator=gen)
        yield wav, y


class LogSpec(nn.Module):
    def __init__(self, n_fft=64, hop=32):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("win", torch.hann_window(n_fft))

    def forward(self, wav):
        s = torch.stft(wav, self.n_fft, self.hop, window=self.win, return_complex=True)
        return torch.log1p(s.abs()).unsqueeze(1)            # B 1 F T


class CRNN(nn.Module):
    def __init__(self, n_fft=64, ch=12, hid=32):
        super().__init__()
        self.front = LogSpec(n_fft)
        self.cnn = nn.Sequential(
            nn.Conv2d(1, ch, 3, padding=1), nn.BatchNorm2d(ch), nn.ReLU(), nn.MaxPool2d((2, 1)),
            nn.Conv2d(ch, ch, 3, padding=1), nn.BatchNorm2d(ch), nn.ReLU(), nn.MaxPool2d((2, 1)),
        )
        freq = (n_fft // 2 + 1) // 2 // 2
        self.rnn = nn.GRU(ch * freq, hid, batch_first=True)
        self.fc = nn.Linear(hid, len(WORDS))

    def forward(self, wav):
        z = self.cnn(self.front(wav))                       # B C F' T
        b, c, f, t = z.shape
        z = z.permute(0, 3, 2, 1).view(b, t, f * c)
        _, h = self.rnn(z)
        return self.fc(h[-1])


def main(steps=60, bs=32):
    torch.manual_seed(33)
    stream = chirps(bs, torch.Generator().manual_seed(1))
    held_out = list(itertools.islice(chirps(100, torch.Generator().manual_seed(2)), 2))
    net = CRNN()
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    sch = MultiStepLR(opt, [40], 0.3)
    for i, (wav, y) in zip(range(steps), stream):
        net.train()
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(wav), y)
        loss.backward()
        opt.step()
        sch.step()
        if i % 20 == 19:
            net.eval()
            with torch.no_grad():
                acc = torch.cat([net(w).argmax(1) == k for w, k in held_out]).float().mean()
            print(f"{i + 1}: loss {loss.item():.3f} acc {acc.item():.3f}")


if __name__ == "__main__":
    main()
