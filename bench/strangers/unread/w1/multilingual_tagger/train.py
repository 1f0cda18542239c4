"""One shared encoder, one tag head per language; every rank draws its batches by language.

torchrun --nproc_per_node 2 train.py
"""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

TAGSETS = {"de": 12, "fr": 9, "fi": 17, "tr": 14}
LANGS = sorted(TAGSETS)


class Tagger(nn.Module):
    def __init__(self, vocab=500, dim=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.enc = nn.LSTM(dim, dim, bidirectional=True, batch_first=True)
        self.heads = nn.ModuleDict({k: nn.Linear(2 * dim, n) for k, n in TAGSETS.items()})

    def forward(self, tokens, lang):
        h, _ = self.enc(self.emb(tokens))
        return self.heads[lang](h)


class LanguageStream:
    """Temperature sampled languages; each rank has its own generator."""

    def __init__(self, rank, batch=16, length=20, seed=0):
        self.g = torch.Generator().manual_seed(seed * 1000 + rank)
        self.p = torch.tensor([5.0, 3.0, 1.0, 1.0]).pow(0.7)
        self.shape = (batch, length)

    def next(self):
        lang = LANGS[torch.multinomial(self.p, 1, generator=self.g).item()]
        tokens = torch.randint(500, self.shape, generator=self.g)
        tags = (tokens * 7 + tokens.roll(1, dims=1)) % TAGSETS[lang]
        return lang, tokens, tags


def broadcast_parameters(model):
    for t in list(model.parameters()) + list(model.buffers()):
        dist.broadcast(t.data, src=0)


def average_gradients(model, world):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
            p.grad.div_(world)


def main():
    dist.init_process_group("gloo" if not torch.cuda.is_available() else "nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)

    torch.manual_seed(1)
    model = Tagger().to(device)
    broadcast_parameters(model)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    stream = LanguageStream(rank)

    for step in range(200):
        lang, tokens, tags = stream.next()
        tokens, tags = tokens.to(device), tags.to(device)
        scores = model(tokens, lang)
        loss = F.cross_entropy(scores.flatten(0, 1), tags.flatten())
        opt.zero_grad()
        loss.backward()
        average_gradients(model, world)
        opt.step()

        if step % 20 == 0:
            shown = loss.detach().clone()
            dist.all_reduce(shown)
            if rank == 0:
                print(f"step {step} loss {shown.item() / world:.3f}", flush=True)

    if rank == 0:
        torch.save(model.state_dict(), "/tmp/tagger_w1.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
