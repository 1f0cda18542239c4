"""Tiny GPT-2 from scratch on sentences of a small made-up grammar, with the HF Trainer.

In the grammar the verb agrees with the subject and the closing tag repeats the
subject's group, so the predictable tokens can only be got right from context.
"""
import os
import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

SEED = int(os.environ.get("SEED", 0))

SINGULAR = {"cat": "pets", "dog": "pets", "baker": "people", "pilot": "people", "tram": "machines", "clock": "machines"}
PLURAL = {w + "s": g for w, g in SINGULAR.items()}
ADJ = ["old", "tired", "red", "clever", "quiet"]
VERBS = [("sleeps", "sleep"), ("waits", "wait"), ("turns", "turn"), ("returns", "return")]
PLACES = ["garden", "station", "kitchen", "harbour"]
SPECIAL = ["<pad>", "<bos>", "<eos>"]


def make_sentence(rng):
    plural = rng.random() < 0.5
    noun, group = rng.choice(list((PLURAL if plural else SINGULAR).items()))
    words = ["these" if plural else "this"]
    words += rng.sample(ADJ, rng.randint(0, 2))
    words += [noun, rng.choice(VERBS)[int(plural)]]
    if rng.random() < 0.6:
        words += ["in", "the", rng.choice(PLACES)]
    return words + ["#", group]


class WordTokenizer:
    def __init__(self, sentences):
        vocab = SPECIAL + sorted({w for s in sentences for w in s})
        self.itos = vocab
        self.stoi = {w: i for i, w in enumerate(vocab)}
        self.pad_id, self.bos_id, self.eos_id = 0, 1, 2

    def __len__(self):
        return len(self.itos)

    def encode(self, words):
        return [self.bos_id] + [self.stoi[w] for w in words] + [self.eos_id]

    def decode(self, ids):
        return " ".join(self.itos[i] for i in ids if i > 2)


class PhraseDataset(Dataset):
    def __init__(self, sentences, tokenizer):
        self.examples = [tokenizer.encode(s) for s in sentences]

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, idx):
        return {"input_ids": self.examples[idx]}


class PaddingCollator:
    def __init__(self, pad_id):
        self.pad_id = pad_id

    def __call__(self, features):
        longest = max(len(f["input_ids"]) for f in features)
        ids, mask, labels = [], [], []
        for f in features:
            seq = f["input_ids"]
            gap = longest - len(seq)
            ids.append(seq + [self.pad_id] * gap)
            mask.append([1] * len(seq) + [0] * gap)
            labels.append(seq + [-100] * gap)
        return {
            "input_ids": torch.tensor(ids),
            "attention_mask": torch.tensor(mask),
            "labels": torch.tensor(labels),
        }


def keep_argmax(logits, labels):
    return logits.argmax(dim=-1)


def main():
    set_seed(SEED)
    rng = random.Random(SEED)
    sentences = [make_sentence(rng) for _ in range(3000)]
    tokenizer = WordTokenizer(sentences)
    train_ds = PhraseDataset(sentences[:2600], tokenizer)
    eval_ds = PhraseDataset(sentences[2600:], tokenizer)
    group_ids = [tokenizer.stoi[g] for g in ("pets", "people", "machines")]

    def compute_metrics(p):
        preds, labels = p.predictions[:, :-1], p.label_ids[:, 1:]
        real = labels != -100
        tags = np.isin(labels, group_ids)
        return {
            "token_acc": float((preds == labels)[real].mean()),
            "tag_acc": float((preds == labels)[tags].mean()),
        }

    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=16, n_embd=48, n_layer=2, n_head=4,
        bos_token_id=tokenizer.bos_id, eos_token_id=tokenizer.eos_id, pad_token_id=tokenizer.pad_id,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        initializer_range=0.1,  # the default 0.02 is meant for wide models
    )
    model = GPT2LMHeadModel(config)

    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=3,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=3e-3,
        lr_scheduler_type="cosine",
        warmup_steps=30,
        weight_decay=0.01,
        max_grad_norm=1.0,
        eval_strategy="epoch",
        logging_steps=41,
        save_strategy="no",
        report_to=[],
        seed=SEED,
        disable_tqdm=True,
        use_cpu=True,
        dataloader_num_workers=0,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train_ds,
        eval_dataset=eval_ds,
        data_collator=PaddingCollator(tokenizer.pad_id),
        compute_metrics=compute_metrics,
        preprocess_logits_for_metrics=keep_argmax,
    )
    trainer.train()
    trainer.save_model("out/final")

    metrics = trainer.evaluate()
    print(f"eval perplexity: {np.exp(metrics['eval_loss']):.4f}")
    print(f"tag accuracy {metrics['eval_tag_acc']:.4f}  token accuracy {metrics['eval_token_acc']:.4f}")


if __name__ == "__main__":
    main()
