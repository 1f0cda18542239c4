"""Character model on made-up proverbs, with accelerate."""
import random

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

WHO = "the miller,a tired king,my old aunt,every fox,the ferryman,some clever bird,nobody".split(",")
DOES = "loves,forgets,never trusts,pays for,counts,waits for,follows".split(",")
WHEN = "at dawn,in winter,when it snows,after supper,on mondays,before the feast,far from home".split(",")
WHAT = "the river,cold bread,his own shadow,a promise,the early train,seven ducks,rain".split(",")


def write_text(sentences, seed):
    rng = random.Random(seed)
    return " ".join(f"{rng.choice(WHO)} {rng.choice(DOES)} {rng.choice(WHAT)} {rng.choice(WHEN)}." for _ in range(sentences))


class Blocks(Dataset):
    def __init__(self, ids, size):
        self.ids, self.size = ids, size

    def __len__(self):
        return len(self.ids) - self.size - 1

    def __getitem__(self, i):
        piece = self.ids[i:i + self.size + 1]
        return piece[:-1], piece[1:]


class CharModel(nn.Module):
    def __init__(self, vocab, size, dim=64, heads=4, layers=2):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(size, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm, self.out = nn.LayerNorm(dim), nn.Linear(dim, vocab)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(size), persistent=False)

    def forward(self, ids):
        h = self.tok(ids) + self.pos.weight[: ids.size(1)]
        return self.out(self.norm(self.body(h, mask=self.mask, is_causal=True)))


def configure_optimizer(model, lr, weight_decay):
    matrices, rest = [], []
    for name, p in model.named_parameters():
        (matrices if p.ndim >= 2 and "pos" not in name else rest).append(p)
    return torch.optim.AdamW([
        {"params": matrices, "weight_decay": weight_decay / lr},
        {"params": rest, "weight_decay": 0.0},
    ], lr=lr, betas=(0.9, 0.95))


def main(steps=150, size=32, lr=1e-3):
    set_seed(0)
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    train_text, valid_text = write_text(150, seed=1), write_text(12, seed=2)
    chars = sorted(set("".join(WHO + DOES + WHAT + WHEN)) | {" ", "."})
    ids = [torch.tensor([chars.index(c) for c in text]) for text in (train_text, valid_text)]
    train = DataLoader(Blocks(ids[0], size), batch_size=32, shuffle=True, drop_last=True)
    valid = DataLoader(Blocks(ids[1], size), batch_size=64)
    model = CharModel(len(chars), size)
    optimizer = configure_optimizer(model, lr, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))
    model, optimizer, train, valid, scheduler = accelerator.prepare(model, optimizer, train, valid, scheduler)
    ce = nn.CrossEntropyLoss()
    step = 0
    while step < steps:
        for x, y in train:
            model.train()
            loss = ce(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            step += 1
            if step % 50 == 0:
                model.eval()
                each = []
                with torch.no_grad():
                    for a, b in valid:
                        nll = nn.functional.cross_entropy(model(a).transpose(1, 2), b, reduction="none").mean(1)
                        each.append(accelerator.gather_for_metrics(nll))
                accelerator.print(f"step {step} train {loss.item():.3f} valid {torch.cat(each).mean().item():.3f}")
            if step >= steps:
                break


if __name__ == "__main__":
    main()
