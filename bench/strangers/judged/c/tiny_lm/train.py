import json
import pathlib
import random

import torch
import torch.nn.functional as F

from model import TinyLM

HERE = pathlib.Path(__file__).parent
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def story(n_sentences, seed):
    rng = random.Random(seed)
    who = ["the miller", "a young fox", "my aunt", "the old king", "nobody"]
    did = ["followed", "remembered", "painted", "sold", "waited for"]
    what = ["the river", "seven geese", "a letter", "the last lamp", "his brother"]
    when = ["at dawn", "in the rain", "every winter", "without a word"]
    return " ".join(f"{rng.choice(who)} {rng.choice(did)} {rng.choice(what)} {rng.choice(when)}." for _ in range(n_sentences))


def get_batch(data, cfg, gen):
    starts = torch.randint(0, len(data) - cfg["block"] - 1, (cfg["batch"],), generator=gen)
    win = torch.stack([data[s:s + cfg["block"] + 1] for s in starts])
    return win[:, :-1], win[:, 1:]


def lm_loss(model, x, y):
    logits = model(x).float()
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


@torch.no_grad()
def val_loss(model, data, cfg):
    model.eval()
    gen = torch.Generator().manual_seed(0)
    out = sum(lm_loss(model, *get_batch(data, cfg, gen)).item() for _ in range(5)) / 5
    model.train()
    return out


def main():
    cfg = json.loads((HERE / "config.json").read_text())
    torch.manual_seed(cfg["seed"])
    train_text, val_text = story(400, seed=1), story(60, seed=2)
    chars = " ." + "abcdefghijklmnopqrstuvwxyz"
    train_data, val_data = (torch.tensor([chars.index(c) for c in t]) for t in (train_text, val_text))

    model = TinyLM(len(chars), cfg).to(DTYPES[cfg["precision"]])
    decay, no_decay = [], []
    for p in model.parameters():
        (decay if p.dim() > 1 else no_decay).append(p)
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}],
                            lr=cfg["lr"], betas=tuple(cfg["betas"]))
    gen = torch.Generator().manual_seed(cfg["seed"])

    for it in range(cfg["iters"] + 1):
        if it % cfg["eval_every"] == 0:
            print(f"iter {it} val {val_loss(model, val_data, cfg):.4f}")
        x, y = get_batch(train_data, cfg, gen)
        opt.zero_grad(set_to_none=True)
        loss = lm_loss(model, x, y)
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
