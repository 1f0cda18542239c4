import torch
from torch import nn
from torch.utils.data import DataLoader

from data import PAD, VOCAB, ReversedSentences, collate
from losses import SmoothedCrossEntropy


class Seq2Seq(nn.Module):
    def __init__(self, d=48, heads=4, layers=1, max_len=32):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.pos = nn.Embedding(max_len, d)
        self.core = nn.Transformer(d, heads, layers, layers, 96, 0.1, batch_first=True)
        self.proj = nn.Linear(d, VOCAB)

    def embed(self, ids):
        return self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))

    def forward(self, src, tgt):
        causal = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool, device=tgt.device).triu(1)
        h = self.core(
            self.embed(src), self.embed(tgt), tgt_mask=causal,
            src_key_padding_mask=src == PAD, tgt_key_padding_mask=tgt == PAD, memory_key_padding_mask=src == PAD,
        )
        return self.proj(h)


def noam(step, warmup=80):
    step = step + 1
    return min(step / warmup, (warmup / step) ** 0.5)


@torch.no_grad()
def token_accuracy(net, loader):
    net.eval()
    good = total = 0
    for src, tgt in loader:
        guess = net(src, tgt[:, :-1]).argmax(-1)
        gold = tgt[:, 1:]
        real = gold != PAD
        good += ((guess == gold) & real).sum().item()
        total += real.sum().item()
    return good / total


def main():
    torch.manual_seed(2)
    train = DataLoader(ReversedSentences(1000, 1), 50, shuffle=True, collate_fn=collate)
    valid = DataLoader(ReversedSentences(150, 2), 50, collate_fn=collate)
    net = Seq2Seq()
    criterion = SmoothedCrossEntropy(VOCAB, smoothing=0.1, ignore_index=PAD)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3, betas=(0.9, 0.98))
    sched = torch.optim.lr_scheduler.LambdaLR(opt, noam)
    for epoch in range(6):
        net.train()
        tot = 0.0
        for src, tgt in train:
            scores = net(src, tgt[:, :-1])
            loss = criterion(scores.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1))
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            sched.step()
            tot += loss.item()
        print(f"epoch {epoch}  loss {tot / len(train):.4f}  valid token acc {token_accuracy(net, valid):.4f}")


if __name__ == "__main__":
    main()
