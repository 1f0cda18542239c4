import argparse
import os
import tempfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

from sampler import ResumableSampler


class Chunks(Dataset):
    """Fixed-length chunks of a Markov text."""

    def __init__(self, n=640, width=24, vocab=32):
        g = torch.Generator().manual_seed(77)
        table = torch.softmax(3 * torch.randn(vocab, vocab, generator=g), -1)
        rows = [torch.randint(vocab, (n,), generator=g)]
        for _ in range(width):
            rows.append(torch.multinomial(table[rows[-1]], 1, generator=g).squeeze(1))
        self.data = torch.stack(rows, 1)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


class GRULM(nn.Module):
    def __init__(self, vocab=32, d=48):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(vocab, d), nn.GRU(d, d, batch_first=True), nn.Linear(d, vocab)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def snapshot(path, model, opt, sched, sampler, step):
    torch.save({
        "model": model.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(),
        "sampler": sampler.state_dict(), "step": step, "rng": torch.get_rng_state(),
    }, path + ".part")
    os.replace(path + ".part", path)


def run(path, epochs, batch, save_every, stop_after=None):
    torch.manual_seed(1)
    data = Chunks()
    sampler = ResumableSampler(len(data), seed=1)
    loader = DataLoader(data, batch_size=batch, sampler=sampler)
    model = GRULM()
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
    total = epochs * len(data) // batch
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 10) * max(0.05, 1 - s / total))
    step = 0
    if os.path.exists(path):
        ck = torch.load(path)
        model.load_state_dict(ck["model"])
        opt.load_state_dict(ck["opt"])
        sched.load_state_dict(ck["sched"])
        sampler.load_state_dict(ck["sampler"])
        step = ck["step"]
        torch.set_rng_state(ck["rng"])
        print(f"resumed at step {step}, epoch {sampler.epoch}, {sampler.consumed} chunks consumed")

    for epoch in range(sampler.epoch, epochs):
        sampler.set_epoch(epoch)
        model.train()
        for ids in loader:
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            sampler.advance(len(ids))
            if step % save_every == 0:
                snapshot(path, model, opt, sched, sampler, step)
            if stop_after and step == stop_after:
                print(f"preempted at step {step}")
                return
        print(f"epoch {epoch} step {step} loss {loss.item():.4f} lr {opt.param_groups[0]['lr']:.2e}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--save-every", type=int, default=10)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as d:
        ck = os.path.join(d, "ck.pt")
        run(ck, a.epochs, a.batch, a.save_every, stop_after=63)
        run(ck, a.epochs, a.batch, a.save_every)
