"""Tiny chat model with the HF Trainer."""
import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import Dataset
from transformers import (DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

CHAT_MARKERS = ["<|user|>", "<|assistant|>", "<|end|>"]
TOPICS = ["weather", "music", "trains", "cooking", "football"]
MOODS = ["great", "bad", "fine", "strange"]


def dialogues(n, rng):
    out = []
    for _ in range(n):
        t, m = rng.choice(TOPICS), rng.choice(MOODS)
        out.append((f"what do you think about {t} today", f"i think {t} is {m} today"))
    return out


def train_tokenizer(texts):
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["<unk>", "<pad>"]))
    return PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>", pad_token="<pad>")


def build_model(tok):
    cfg = GPT2Config(vocab_size=len(tok), n_positions=64, n_embd=48, n_layer=2, n_head=4,
                     bos_token_id=None, eos_token_id=None, pad_token_id=tok.pad_token_id)
    return GPT2LMHeadModel(cfg)


def add_chat_format(tok):
    tok.add_special_tokens({"additional_special_tokens": CHAT_MARKERS})
    return tok


class Chats(Dataset):
    def __init__(self, pairs, tok):
        u, a, e = CHAT_MARKERS
        self.rows = [tok(f"{u} {q} {e} {a} {r} {e}", truncation=True, max_length=64) for q, r in pairs]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {k: self.rows[i][k] for k in ("input_ids", "attention_mask")}


def main():
    set_seed(31)
    pairs = dialogues(240, random.Random(31))
    train_pairs, val_pairs = pairs[:200], pairs[200:]
    tok = train_tokenizer(f"{q} {a}" for q, a in train_pairs)
    model = build_model(tok)
    tok = add_chat_format(tok)

    args = TrainingArguments(
        output_dir="/tmp/chat_w1", num_train_epochs=1, per_device_train_batch_size=16, learning_rate=1e-3,
        eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=not torch.cuda.is_available(),
        disable_tqdm=True, logging_steps=5,
    )
    trainer = Trainer(
        model=model, args=args, train_dataset=Chats(train_pairs, tok), eval_dataset=Chats(val_pairs, tok),
        data_collator=DataCollatorForLanguageModeling(tok, mlm=False),
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
