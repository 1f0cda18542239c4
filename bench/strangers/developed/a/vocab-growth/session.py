import torch
import torch.nn.functional as F


class Session:
    """Holds everything that belongs to one continual-learning run."""

    def __init__(self, net, lr=5e-3, batch=32, seed=0):
        self.net = net
        self.batch = batch
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)
        self.gen = torch.Generator().manual_seed(seed)

    def _loss(self, tokens):
        logits = self.net(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def fit(self, corpus, epochs):
        self.net.train()
        for _ in range(epochs):
            for idx in torch.randperm(len(corpus), generator=self.gen).split(self.batch):
                self.opt.zero_grad()
                loss = self._loss(corpus[idx])
                loss.backward()
                self.opt.step()
        return loss.item()

    @torch.no_grad()
    def perplexity(self, corpus):
        self.net.eval()
        return self._loss(corpus).exp().item()
