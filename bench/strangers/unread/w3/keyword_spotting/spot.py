import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from optimisers import Lookahead

WORDS, FRAMES, MELS = 6, 40, 20


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(MELS, 32, 5, padding=2)
        self.rnn = nn.GRU(32, 32, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(64, WORDS)

    def forward(self, mel):
        h = torch.relu(self.conv(mel.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.fc(h.mean(1))


def utterances(n, seed):
    g = torch.Generator().manual_seed(seed)
    templates = torch.randn(WORDS, FRAMES, MELS, generator=torch.Generator().manual_seed(99))
    y = torch.randint(WORDS, (n,), generator=g)
    gain = 0.7 + 0.6 * torch.rand(n, 1, 1, generator=g)
    return TensorDataset(gain * templates[y] + 1.5 * torch.randn(n, FRAMES, MELS, generator=g), y)


def train_epoch(net, loader, opt, criterion):
    net.train()
    total = 0.0
    for mel, word in loader:
        opt.zero_grad()
        loss = criterion(net(mel), word)
        loss.backward()
        opt.step()
        total += loss.item() * len(word)
    return total / len(loader.dataset)


@torch.no_grad()
def test(net, loader):
    net.eval()
    return sum((net(m).argmax(1) == w).sum().item() for m, w in loader) / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(17)
    train_loader = DataLoader(utterances(600, 0), batch_size=40, shuffle=True)
    test_loader = DataLoader(utterances(200, 1), batch_size=100)
    net = Spotter()
    opt = Lookahead(torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9))
    criterion = nn.CrossEntropyLoss()
    for epoch in range(8):
        loss = train_epoch(net, train_loader, opt, criterion)
        print(f"{epoch} loss {loss:.4f} acc {test(net, test_loader):.3f}")
