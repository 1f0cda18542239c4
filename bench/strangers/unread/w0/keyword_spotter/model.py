from torch import nn

from layers import AttentivePool, FrameStack


class Spotter(nn.Module):
    def __init__(self, n_freq, n_classes, width=32, stack=3):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(n_freq, width, 5, padding=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.stack = FrameStack(stack)
        self.rnn = nn.GRU(width * stack, 48, batch_first=True)
        self.pool = AttentivePool(48)
        self.out = nn.Linear(48, n_classes)

    def forward(self, spec):
        frames = self.front(spec).transpose(1, 2)
        hidden, _ = self.rnn(self.stack(frames))
        return self.out(self.pool(hidden))
