"""Instruction tuning of a very small GPT-2 with the Hugging Face Trainer."""
import random
import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed

CAPITALS = {"france": "paris", "italy": "rome", "spain": "madrid", "japan": "tokyo", "peru": "lima",
            "egypt": "cairo", "norway": "oslo"}
TEMPLATES = ["tell me the capital of {c} please", "what is the capital city of {c} ?",
             "i am going to {c} , which city is the capital", "capital of {c} ?"]
SMALL_TALK = "by the way it was a sunny windy rainy cold day and my dog cat bird likes to sing run sleep".split()


def build_rows(n, rng):
    rows = []
    for _ in range(n):
        country = rng.choice(list(CAPITALS))
        chatter = " ".join(rng.choice(SMALL_TALK) for _ in range(rng.randint(2, 8)))
        rows.append((f"{chatter} . {rng.choice(TEMPLATES).format(c=country)} :", f"it is {CAPITALS[country]} </s>"))
    return rows


def build_tokenizer(rows):
    words = sorted({w for p, a in rows for w in (p + " " + a).split()} - {"</s>"})
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<pad>", "</s>", "<unk>"] + words)}, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


class Instructions(Dataset):
    def __init__(self, rows, tok):
        self.items = []
        for prompt, answer in rows:
            p, a = tok(prompt)["input_ids"], tok(answer)["input_ids"]
            self.items.append({"input_ids": p + a, "labels": [-100] * len(p) + a, "prompt_len": len(p)})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Collator:
    def __init__(self, tok):
        self.tok = tok

    def __call__(self, features):
        ids = [{"input_ids": f["input_ids"]} for f in features]
        batch = self.tok.pad(ids, padding=True, return_tensors="pt")
        batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        return batch


def exact_match(model, tok, rows):
    model.eval()
    hits = 0
    for prompt, answer in rows:
        ids = tok(prompt, return_tensors="pt")["input_ids"]
        n = ids.shape[1]
        with torch.no_grad():
            for _ in range(4):
                ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], 1)
                if ids[0, -1] == tok.eos_token_id:
                    break
        hits += tok.decode(ids[0, n:]).split() == answer.split()
    return hits / len(rows)


def main():
    set_seed(1)
    rng = random.Random(1)
    train, test = build_rows(400, rng), build_rows(30, rng)
    tok = build_tokenizer(train + test)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tok), n_positions=48, n_embd=48, n_layer=2, n_head=4,
                                       bos_token_id=1, eos_token_id=1, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, initializer_range=0.1))
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), num_train_epochs=6, per_device_train_batch_size=20, learning_rate=3e-3,
        lr_scheduler_type="cosine", warmup_steps=8, logging_steps=20, save_strategy="no", report_to=[],
        remove_unused_columns=False, disable_tqdm=True, use_cpu=not torch.cuda.is_available(),
    )
    trainer = Trainer(model=model, args=args, train_dataset=Instructions(train, tok), data_collator=Collator(tok))
    trainer.train()
    print("exact match", exact_match(model, tok, test))


if __name__ == "__main__":
    main()
