import logging
from argparse import ArgumentParser

import torch
import torch.nn.functional as F

from modeling import Encoder
from reviews import FILM, SHOP, WORDS, corpus

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("adapt")


class Stage:
    """One training stage; `trainable` lists the name prefixes that receive updates (empty = all)."""

    def __init__(self, name, lr, epochs, trainable=()):
        self.name, self.lr, self.epochs, self.trainable = name, lr, epochs, tuple(trainable)

    def select(self, model):
        for n, p in model.named_parameters():
            p.requires_grad = not self.trainable or n.startswith(self.trainable)
        return [p for p in model.parameters() if p.requires_grad]

    def run(self, model, data, test):
        params = self.select(model)
        log.info("%s: %d of %d weights", self.name, sum(p.numel() for p in params), sum(p.numel() for p in model.parameters()))
        opt = torch.optim.AdamW(params, lr=self.lr)
        ids, y = data
        for ep in range(self.epochs):
            model.train()
            for b in torch.randperm(len(y)).split(32):
                loss = F.cross_entropy(model(ids[b]), y[b])
                opt.zero_grad()
                loss.backward()
                opt.step()
            model.eval()
            with torch.no_grad():
                acc = (model(test[0]).argmax(1) == test[1]).float().mean().item()
            log.info("  epoch %d loss %.4f test acc %.3f", ep, loss.item(), acc)


def main():
    ap = ArgumentParser()
    ap.add_argument("--size", type=int, default=8)
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    model = Encoder(len(WORDS) + 1, 2)
    Stage("pretrain", 2e-3, 3).run(model, corpus(SHOP, 800, 0), corpus(SHOP, 200, 1))
    model.insert_adapters(args.size)
    Stage("adapters", 1e-2, 6, trainable=["adapter", "classifier"]).run(model, corpus(FILM, 800, 2), corpus(FILM, 200, 3))


if __name__ == "__main__":
    main()
