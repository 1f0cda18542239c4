"""Supervised fine-tuning of a tiny GPT-2 on arithmetic instructions (only the answer carries loss)."""
import random

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

BLOCK = 40
IGNORE = -100
set_seed(17)


def build_tokenizer():
    specials = ["<pad>", "<eos>", "<unk>"]
    chars = list("0123456789+-= abcdefghijklmnopqrstuvwxyz?:.")
    vocab = {tok: i for i, tok in enumerate(specials + chars)}
    raw = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def make_pairs(n, rng):
    pairs = []
    for _ in range(n):
        a, b = rng.randint(0, 49), rng.randint(0, 49)
        if rng.random() < 0.5:
            pairs.append((f"question: what is {a}+{b}? ", f"{a + b}"))
        else:
            pairs.append((f"question: what is {a}-{b}? ", f"{a - b}"))
    return pairs


class InstructionDataset(torch.utils.data.Dataset):
    def __init__(self, pairs, tok):
        self.rows = []
        for prompt, answer in pairs:
            p = tok(prompt, add_special_tokens=False)["input_ids"]
            a = tok(answer, add_special_tokens=False)["input_ids"] + [tok.eos_token_id]
            ids = (p + a)[:BLOCK]
            labels = ([IGNORE] * len(p) + a)[:BLOCK]
            fill = BLOCK - len(ids)
            self.rows.append({
                "input_ids": ids + [tok.pad_token_id] * fill,
                "attention_mask": [1] * len(ids) + [0] * fill,
                "labels": labels + [IGNORE] * fill,
            })

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def main():
    tok = build_tokenizer()
    rng = random.Random(5)
    pairs = sorted(set(make_pairs(700, rng)))
    rng.shuffle(pairs)
    train, held = InstructionDataset(pairs[:450], tok), InstructionDataset(pairs[450:550], tok)

    config = GPT2Config(
        vocab_size=len(tok), n_positions=BLOCK, n_embd=64, n_layer=2, n_head=4,
        bos_token_id=tok.eos_token_id, eos_token_id=tok.eos_token_id, pad_token_id=tok.pad_token_id,
    )
    args = TrainingArguments(
        output_dir="/tmp/w2_instruct_toy", num_train_epochs=2, per_device_train_batch_size=32,
        per_device_eval_batch_size=50, learning_rate=2e-3, warmup_steps=5, lr_scheduler_type="cosine",
        logging_steps=10, eval_strategy="epoch", save_strategy="no", report_to=[], seed=17,
        use_cpu=not torch.cuda.is_available(), disable_tqdm=True,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=args,
        train_dataset=train,
        eval_dataset=held,
        data_collator=DataCollatorForLanguageModeling(tok, mlm=False),
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
