from torch import nn

from .reverse import reverse_gradient


class DomainNet(nn.Module):
    def __init__(self, n_in, width=32):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.task = nn.Linear(width, 2)
        self.domain = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x, strength):
        f = self.features(x)
        return self.task(f), self.domain(reverse_gradient(f, strength))
