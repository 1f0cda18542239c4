import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset


def build_interactions(n_users=120, n_songs=80, n=20000):
    g = torch.Generator().manual_seed(42)
    taste, style = torch.randn(n_users, 4, generator=g), torch.randn(n_songs, 4, generator=g)
    u = torch.randint(n_users, (n,), generator=g)
    s = torch.randint(n_songs, (n,), generator=g)
    p = torch.sigmoid((taste[u] * style[s]).sum(1))
    return u, s, torch.bernoulli(p, generator=g)


class ResumableShuffle(Sampler):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed
        self.epoch, self.position = 0, 0

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.n, generator=g).tolist()
        yield from order[self.position:]

    def advance(self, k):
        self.position += k

    def next_epoch(self):
        self.epoch += 1
        self.position = 0

    def __len__(self):
        return self.n - self.position

    def state_dict(self):
        return {"epoch": self.epoch, "position": self.position, "seed": self.seed}

    def load_state_dict(self, state):
        self.epoch, self.position, self.seed = state["epoch"], state["position"], state["seed"]


class MatrixFactorisation(nn.Module):
    def __init__(self, n_users, n_songs, k=8):
        super().__init__()
        self.user, self.song = nn.Embedding(n_users, k), nn.Embedding(n_songs, k)
        self.bias = nn.Embedding(n_songs, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.song.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, s):
        return (self.user(u) * self.song(s)).sum(1) + self.bias(s).squeeze(1)


def make_loader(dataset, batch_size, seed):
    sampler = ResumableShuffle(len(dataset), seed)
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler), sampler


def save(path, model, opt, sched, sampler, step):
    tmp = path + ".tmp"
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(),
                "sampler": sampler.state_dict(), "step": step, "rng": torch.get_rng_state()}, tmp)
    os.replace(tmp, path)


def load(path, model, opt, sched, sampler):
    ckpt = torch.load(path)
    model.load_state_dict(ckpt["model"])
    opt.load_state_dict(ckpt["opt"])
    sched.load_state_dict(ckpt["sched"])
    sampler.load_state_dict(ckpt["sampler"])
    torch.set_rng_state(ckpt["rng"])
    return ckpt["step"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=600)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--batch-size-late", type=int, default=128, help="batch size once the warm-up is over")
    ap.add_argument("--warmup", type=int, default=40)
    ap.add_argument("--seed", type=int, default=5)
    ap.add_argument("--ckpt", default="songs.pt")
    ap.add_argument("--stop-at", type=int, default=None, help="leave early, e.g. at the end of a cluster slot")
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    u, s, y = build_interactions()
    train, valid = TensorDataset(u[:16000], s[:16000], y[:16000]), (u[16000:], s[16000:], y[16000:])
    model = MatrixFactorisation(120, 80)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.steps)
    loader, sampler = make_loader(train, args.batch_size, args.seed)
    step = 0
    if os.path.exists(args.ckpt):
        step = load(args.ckpt, model, opt, sched, sampler)
        print("continuing after step", step)
    if step >= args.warmup:
        loader, sampler = make_loader(train, args.batch_size_late, args.seed)

    bce = nn.BCEWithLogitsLoss()
    last = min(args.steps, args.stop_at or args.steps)
    while step < last:
        for bu, bs, by in loader:
            loss = bce(model(bu, bs), by)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            sampler.advance(len(by))
            if step % 25 == 0:
                save(args.ckpt, model, opt, sched, sampler, step)
            if step == args.warmup:
                state = sampler.state_dict()
                loader, sampler = make_loader(train, args.batch_size_late, args.seed)
                sampler.load_state_dict(state)
                break
            if step >= last:
                break
        else:
            sampler.next_epoch()
            with torch.no_grad():
                vloss = bce(model(valid[0], valid[1]), valid[2]).item()
            print(f"step {step} epoch {sampler.epoch} valid {vloss:.4f}")


if __name__ == "__main__":
    main()
