import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from callbacks import ClipGradient, Progress, WarmupLR
from engine import Engine

VOCAB = 11  # 0 = blank, 1..10 = digits
N_MELS = 20


class FakeDigits(Dataset):
    """Each digit is a fixed spectral pattern that lasts 5-9 frames."""

    def __init__(self, n=640):
        g = torch.Generator().manual_seed(5)
        protos = torch.randn(VOCAB, N_MELS, generator=g)
        self.items = []
        for _ in range(n):
            digits = torch.randint(1, VOCAB, (int(torch.randint(2, 5, (1,), generator=g)),), generator=g)
            frames = [protos[d].repeat(int(torch.randint(5, 10, (1,), generator=g)), 1) for d in digits]
            feats = torch.cat(frames)
            self.items.append((feats + 0.3 * torch.randn(feats.shape, generator=g), digits))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    feats, toks = zip(*batch)
    return (pad_sequence(feats, batch_first=True), torch.tensor([len(f) for f in feats]),
            torch.cat(toks), torch.tensor([len(t) for t in toks]))


class CTCModel(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.GRU(N_MELS, hidden, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, VOCAB)

    def forward(self, feats, lens):
        h, _ = self.rnn(feats)
        return self.out(h).log_softmax(-1), lens


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(FakeDigits(), batch_size=32, shuffle=True, collate_fn=collate)
    model = CTCModel()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    clip = ClipGradient(max_norm=5.0)
    engine = Engine(model, opt, nn.CTCLoss(blank=0, zero_infinity=True),
                    callbacks=[WarmupLR(0.05), clip, Progress(clip)])
    engine.fit(loader, epochs=5)
