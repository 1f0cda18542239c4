import logging
from dataclasses import dataclass, field

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("stream")


@dataclass
class StreamConfig:
    streams: int = 16
    length: int = 1200
    chunk: int = 25
    hidden: int = 32
    lr: float = 5e-3
    passes: int = 4
    lags: tuple = field(default=(3, 5))


class DelayedXor:
    """y[t] = x[t-a] xor x[t-b] on long binary streams."""

    def __init__(self, cfg, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randint(0, 2, (cfg.streams, cfg.length), generator=g).float()
        a, b = cfg.lags
        self.y = torch.roll(self.x, a, 1).logical_xor(torch.roll(self.x, b, 1)).float()
        self.valid = torch.arange(cfg.length).expand_as(self.x) >= max(a, b)

    def chunks(self, size):
        for t in range(0, self.x.size(1), size):
            s = slice(t, t + size)
            yield self.x[:, s].unsqueeze(-1), self.y[:, s], self.valid[:, s]


class StreamNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, state=None):
        h, state = self.rnn(x, state)
        return self.out(h).squeeze(-1), state


class StreamTrainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.net = StreamNet(cfg.hidden)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=cfg.lr)
        self.bce = nn.BCEWithLogitsLoss(reduction="none")

    def masked(self, logits, y, valid):
        return (self.bce(logits, y) * valid).sum() / valid.sum().clamp(min=1)

    def train_pass(self, data):
        self.net.train()
        state, losses = None, []
        for x, y, valid in data.chunks(self.cfg.chunk):
            if state is not None:
                state = state.detach()
            logits, state = self.net(x, state)
            loss = self.masked(logits, y, valid)
            self.net.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.opt.step()
            losses.append(loss.detach())
        return torch.stack(losses).mean().item()

    @torch.no_grad()
    def accuracy(self, data):
        self.net.eval()
        state, hit, n = None, 0, 0
        for x, y, valid in data.chunks(200):
            logits, state = self.net(x, state)
            hit += (((logits > 0).float() == y) & valid).sum().item()
            n += valid.sum().item()
        return hit / n


def main():
    cfg = StreamConfig()
    torch.manual_seed(0)
    trainer, train, test = StreamTrainer(cfg), DelayedXor(cfg, 0), DelayedXor(cfg, 1)
    for i in range(cfg.passes):
        log.info("pass %d loss %.4f accuracy %.3f", i, trainer.train_pass(train), trainer.accuracy(test))


if __name__ == "__main__":
    main()
