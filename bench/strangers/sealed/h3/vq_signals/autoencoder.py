from torch import nn

from codebook import Codebook


class VQAutoencoder(nn.Module):
    def __init__(self, dim=16, n_codes=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv1d(16, dim, 4, 2, 1))
        self.vq = Codebook(n_codes, dim)
        self.dec = nn.Sequential(nn.ConvTranspose1d(dim, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(16, 1, 4, 2, 1))

    def forward(self, x):
        z = self.enc(x).transpose(1, 2).contiguous()
        q, commit, pick = self.vq(z)
        return self.dec(q.transpose(1, 2)), commit, pick
