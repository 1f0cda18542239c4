"""Mixture of experts over bag-of-words: the mixture is formed in log space."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TOPICS = 4


class LogMixture(nn.Module):
    """log p(y|x) = logsumexp_k [log g_k(x) + log p_k(y|x)]"""

    def __init__(self, d, n_classes, experts=3):
        super().__init__()
        self.gate = nn.Linear(d, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, n_classes)) for _ in range(experts))

    def forward(self, x):
        log_gate = self.gate(x).log_softmax(-1)
        log_p = torch.stack([e(x).log_softmax(-1) for e in self.experts], 1)
        return torch.logsumexp(log_gate.unsqueeze(-1) + log_p, 1)


def mails(n, words=60, seed=0):
    g = torch.Generator().manual_seed(seed)
    profile = torch.rand(TOPICS, words, generator=torch.Generator().manual_seed(50)) ** 3
    y = torch.randint(TOPICS, (n,), generator=g)
    counts = torch.poisson(2 * profile[y], generator=g)
    return TensorDataset(torch.log1p(counts), y)


def main():
    torch.manual_seed(0)
    train = DataLoader(mails(800, seed=1), 40, shuffle=True)
    val = DataLoader(mails(200, seed=2), 100)
    net = LogMixture(60, TOPICS)
    nll = nn.NLLLoss()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(6):
        net.train()
        for x, y in train:
            opt.zero_grad()
            loss = nll(net(x), y)
            loss.backward()
            opt.step()
        net.eval()
        val_nll = hits = 0
        with torch.no_grad():
            for x, y in val:
                logp = net(x)
                val_nll += nll(logp, y).item() * len(y)
                hits += (logp.argmax(-1) == y).sum().item()
        n = len(val.dataset)
        print(f"{epoch} nll {val_nll / n:.3f} acc {hits / n:.3f}")


if __name__ == "__main__":
    main()
