"""Fine-tune a small causal LM to answer cooking questions.

The questions come from user logs (noisy, not to be imitated), the answers from our editors: the model is
supposed to learn to write answers only.
"""
import random
import tempfile
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import Dataset
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

FOODS = "rice pasta beans lentils potatoes carrots".split()
MINUTES = dict(zip(FOODS, "twelve nine sixty thirty twenty fifteen".split()))
FILLERS = ["hi uh", "hello there", "quick question", "sorry to bother", "hey so"]


@dataclass
class Args:
    max_length: int = 32
    n_train: int = 240
    n_eval: int = 60
    seed: int = 9


def sample(r):
    food = r.choice(FOODS)
    return f"user : {r.choice(FILLERS)} how long do i cook {food} assistant :", f"boil the {food} for {MINUTES[food]} minutes"


def build_tokenizer():
    r = random.Random(0)
    words = sorted({w for _ in range(400) for part in sample(r) for w in part.split()})
    vocab = {w: i for i, w in enumerate(["<pad>", "<eos>", "<unk>"] + words)}
    core = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


class Dialogues(Dataset):
    def __init__(self, n, seed, tok, max_length):
        r = random.Random(seed)
        self.rows = [self.encode(*sample(r), tok, max_length) for _ in range(n)]

    @staticmethod
    def encode(prompt, answer, tok, max_length):
        p = tok(prompt)["input_ids"]
        a = tok(answer)["input_ids"] + [tok.eos_token_id]
        ids = (p + a)[:max_length]
        labels = ([-100] * len(p) + a)[:max_length]
        pad = max_length - len(ids)
        return {
            "input_ids": ids + [tok.pad_token_id] * pad,
            "attention_mask": [1] * len(ids) + [0] * pad,
            "labels": labels + [-100] * pad,
        }

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def main(args):
    set_seed(args.seed)
    tok = build_tokenizer()
    train = Dialogues(args.n_train, 1, tok, args.max_length)
    dev = Dialogues(args.n_eval, 2, tok, args.max_length)
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=len(tok), n_positions=64, n_embd=48, n_layer=2, n_head=4,
        pad_token_id=tok.pad_token_id, eos_token_id=tok.eos_token_id, bos_token_id=tok.eos_token_id,
    ))
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=tempfile.mkdtemp(), num_train_epochs=3, per_device_train_batch_size=16, learning_rate=2e-3,
            eval_strategy="epoch", logging_steps=15, save_strategy="no", report_to=[], use_cpu=not torch.cuda.is_available(),
            seed=args.seed, disable_tqdm=True,
        ),
        train_dataset=train,
        eval_dataset=dev,
        data_collator=DataCollatorForLanguageModeling(tok, mlm=False),
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main(Args())
