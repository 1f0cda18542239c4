import random
from dataclasses import dataclass

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

MONTHS = "january february march april may june july august september october november december".split()
ALPHABET = "\0\1" + " ,./:-0123456789abcdefghijklmnopqrstuvwxyz"
PAD, END = 0, 1
IDX = {c: i for i, c in enumerate(ALPHABET)}


@dataclass
class HParams:
    dim: int = 48
    layers: int = 2
    lr: float = 3e-3
    batch: int = 40
    epochs: int = 4


def to_ids(s):
    return torch.tensor([IDX[c] for c in s])


def sample_pair(rng):
    d, m, y = rng.randint(1, 28), rng.randrange(12), rng.randint(1990, 2029)
    styles = [f"on {d} {MONTHS[m]} {y} we met", f"{MONTHS[m]} {d}, {y} was it", f"dated {d}/{m + 1}/{y}, signed"]
    note = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 9)))
    return f"{note} {rng.choice(styles)}: ", f"{y}-{m + 1:02d}-{d:02d}"


def encode_pair(pair):
    prompt, answer = pair
    ids = torch.cat([to_ids(prompt), to_ids(answer), torch.tensor([END])])
    n_prompt = len(prompt.split())
    target = ids.clone()
    target[:n_prompt] = -100
    return ids, target


def collate(pairs):
    ids, targets = zip(*map(encode_pair, pairs))
    return pad_sequence(ids, True, PAD), pad_sequence(targets, True, -100)


class DateNormalizer(L.LightningModule):
    def __init__(self, hp: HParams):
        super().__init__()
        self.hp = hp
        self.emb = nn.Embedding(len(ALPHABET), hp.dim)
        self.rnn = nn.GRU(hp.dim, 2 * hp.dim, hp.layers, batch_first=True)
        self.out = nn.Linear(2 * hp.dim, len(ALPHABET))

    def forward(self, ids, state=None):
        h, state = self.rnn(self.emb(ids), state)
        return self.out(h), state

    def training_step(self, batch, _):
        ids, target = batch
        logits, _ = self(ids[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=-100)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch} train_loss {self.trainer.callback_metrics['train_loss']:.4f}")

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hp.lr)
        steps = self.trainer.estimated_stepping_batches
        return {"optimizer": opt, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.OneCycleLR(opt, self.hp.lr, total_steps=steps),
                                                   "interval": "step"}}

    @torch.no_grad()
    def normalize(self, prompt):
        logits, state = self(to_ids(prompt)[None])
        text = ""
        for _ in range(12):
            k = logits[0, -1].argmax().item()
            if k == END:
                break
            text += ALPHABET[k]
            logits, state = self(torch.tensor([[k]]), state)
        return text


def main():
    L.seed_everything(4, verbose=False)
    hp, rng = HParams(), random.Random(0)
    train, test = [sample_pair(rng) for _ in range(800)], [sample_pair(rng) for _ in range(40)]
    loader = DataLoader(train, hp.batch, shuffle=True, collate_fn=collate)
    model = DateNormalizer(hp)
    trainer = L.Trainer(max_epochs=hp.epochs, accelerator="auto", devices=1, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0)
    trainer.fit(model, loader)
    model = model.cpu().eval()
    chars = [sum(a == b for a, b in zip(model.normalize(p), t)) / len(t) for p, t in test]
    print(f"char accuracy of the answers {sum(chars) / len(chars):.3f}")


if __name__ == "__main__":
    main()
