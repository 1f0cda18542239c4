import random
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import T5Config, T5ForConditionalGeneration, Trainer, TrainingArguments, set_seed

NOUNS = "cat dog box fox bus lady baby city key toy wolf leaf knife match dish glass boat tree fly spy hero church".split()
NUMS = {"one": False, "two": True, "many": True, "a": False}
PAD, EOS = 0, 1
CHARS = {c: i + 2 for i, c in enumerate(" abcdefghijklmnopqrstuvwxyz")}
BACK = {i: c for c, i in CHARS.items()}


def plural(w):
    if w.endswith(("s", "x", "ch", "sh")):
        return w + "es"
    if w.endswith("y") and w[-2] not in "aeiou":
        return w[:-1] + "ies"
    if w.endswith("f"):
        return w[:-1] + "ves"
    if w.endswith("fe"):
        return w[:-2] + "ves"
    return w + "s"


def pairs(n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        num, noun = rng.choice(list(NUMS)), rng.choice(NOUNS)
        yield f"{num} {noun}", plural(noun) if NUMS[num] else noun


def enc(s):
    return [CHARS[c] for c in s] + [EOS]


class Plurals(Dataset):
    def __init__(self, n, seed):
        self.rows = [(enc(a), enc(b)) for a, b in pairs(n, seed)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i][0], "labels": self.rows[i][1]}


def collate(rows):
    def pad(key, value):
        w = max(len(r[key]) for r in rows)
        return torch.tensor([r[key] + [value] * (w - len(r[key])) for r in rows])
    ids = pad("input_ids", PAD)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": pad("labels", -100)}


@torch.no_grad()
def inflect(model, text):
    out = torch.tensor([[model.config.decoder_start_token_id]])
    src = torch.tensor([enc(text)])
    for _ in range(10):
        nxt = model(input_ids=src, decoder_input_ids=out).logits[:, -1:].argmax(-1)
        if nxt.item() == EOS:
            break
        out = torch.cat([out, nxt], 1)
    return "".join(BACK.get(i, "?") for i in out[0, 1:].tolist())


def main():
    set_seed(0)
    model = T5ForConditionalGeneration(T5Config(
        vocab_size=len(CHARS) + 2, d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4, dropout_rate=0.0,
        pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=PAD))
    args = TrainingArguments(output_dir=tempfile.mkdtemp(), num_train_epochs=6, per_device_train_batch_size=32, learning_rate=6e-3,
                             logging_steps=25, save_strategy="no", report_to=[], disable_tqdm=True, warmup_steps=10,
                             use_cpu=not torch.cuda.is_available())
    Trainer(model=model, args=args, train_dataset=Plurals(800, 0), data_collator=collate).train()
    model.eval()
    test = list(pairs(40, 1))
    print("exact", sum(inflect(model, a) == b for a, b in test) / len(test), inflect(model, "two wolf"))


if __name__ == "__main__":
    main()
