import torch
from torch import nn


class CRNN(nn.Module):
    """log-mel [B, 40, T] -> keyword logits"""

    def __init__(self, n_mels=40, n_classes=12, ch=32, hidden=64):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(n_mels, ch, 5, padding=2), nn.BatchNorm1d(ch), nn.ReLU(),
            nn.Conv1d(ch, ch, 5, stride=2, padding=2), nn.BatchNorm1d(ch), nn.ReLU(),
        )
        self.rnn = nn.GRU(ch, hidden, num_layers=2, batch_first=True, dropout=0.1, bidirectional=True)
        self.head = nn.Linear(2 * hidden, n_classes)

    def forward(self, mel):
        h = self.conv(mel).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.head(h.mean(dim=1))
