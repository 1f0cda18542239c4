import torch.nn as nn


class CTCNet(nn.Module):
    def __init__(self, n_mels=80, hidden=512, layers=4, vocab=128):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv1d(n_mels, hidden, 3, stride=2, padding=1), nn.GELU(),
                                 nn.Conv1d(hidden, hidden, 3, stride=2, padding=1), nn.GELU())
        self.rnn = nn.LSTM(hidden, hidden // 2, layers, batch_first=True, bidirectional=True, dropout=0.1)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, feats, lengths):
        x = self.sub(feats.transpose(1, 2)).transpose(1, 2)
        x, _ = self.rnn(x)
        return self.out(x).float().log_softmax(-1), (((lengths + 1) // 2) + 1) // 2
