import torch
from torch import nn


class FrameStack(nn.Module):
    """Joins `k` neighbouring frames into one, dropping the frames left over at the end."""

    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, frames):
        b, t, c = frames.shape
        t = t - t % self.k
        return frames[:, :t].view(b, t // self.k, self.k * c)


class AttentivePool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, frames):
        w = torch.softmax(self.score(frames), dim=1)
        return (w * frames).sum(dim=1)
