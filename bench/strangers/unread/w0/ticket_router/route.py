import random

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader

QUEUES = {
    "billing": "invoice refund charge card receipt price".split(),
    "access": "password login reset locked account token".split(),
    "hardware": "screen battery cable printer keyboard fan".split(),
}
COMMON = "please my the is help with since yesterday again cannot on and it".split()
NAMES = list(QUEUES)


def tickets(n, seed):
    r = random.Random(seed)
    out = []
    for _ in range(n):
        q = r.randrange(len(NAMES))
        words = r.choices(COMMON, k=r.randint(4, 10)) + r.choices(QUEUES[NAMES[q]], k=2) + r.choices(QUEUES[r.choice(NAMES)], k=1)
        r.shuffle(words)
        out.append((words, q))
    return out


class Router(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.words = nn.Embedding(vocab, dim, padding_idx=0)
        self.experts = {}
        for name in ("mean", "max"):
            self.experts[name] = nn.Sequential(nn.Linear(dim, dim), nn.ReLU())
            self.add_module(f"expert_{name}", self.experts[name])
        self.out = nn.Linear(2 * dim, len(NAMES))

    def forward(self, ids):
        keep = (ids != 0)[..., None]
        e = self.words(ids)
        mean = (e * keep).sum(1) / keep.sum(1)
        peak = e.masked_fill(~keep, float("-inf")).amax(1)
        return self.out(torch.cat([self.experts["mean"](mean), self.experts["max"](peak)], 1))


def main():
    set_seed(7)
    accelerator = Accelerator(gradient_accumulation_steps=4, cpu=not torch.cuda.is_available())
    index = {w: i + 1 for i, w in enumerate(sorted({*COMMON, *sum(QUEUES.values(), [])}))}

    def collate(rows):
        width = max(len(w) for w, _ in rows)
        ids = torch.tensor([[index[t] for t in w] + [0] * (width - len(w)) for w, _ in rows])
        return ids, torch.tensor([q for _, q in rows])

    train = DataLoader(tickets(512, 1), batch_size=8, shuffle=True, collate_fn=collate)
    valid = DataLoader(tickets(150, 2), batch_size=50, collate_fn=collate)
    model = Router(len(index) + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, train, valid = accelerator.prepare(model, optimizer, train, valid)
    for epoch in range(6):
        model.train()
        for ids, queue in train:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(ids), queue)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        hits, total = 0, 0
        with torch.no_grad():
            for ids, queue in valid:
                pred, truth = accelerator.gather_for_metrics((model(ids).argmax(1), queue))
                hits += (pred == truth).sum().item()
                total += len(truth)
        accelerator.print(f"epoch {epoch} loss {loss.item():.3f} accuracy {hits / total:.3f}")


if __name__ == "__main__":
    main()
