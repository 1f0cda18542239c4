"""Small causal LM on syslog-like lines, evaluated by perplexity and next-token accuracy."""
import random
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

SERVICES = ["sshd", "cron", "nginx", "kernel", "postfix"]
EVENTS = ["started", "stopped", "failed with code", "timed out after", "accepted connection from"]
CHARS = sorted(set("abcdefghijklmnopqrstuvwxyz0123456789 :.[]"))
PAD = len(CHARS)
BLOCK = 48


class LogLines(Dataset):
    def __init__(self, n, seed):
        rnd = random.Random(seed)
        index = {c: i for i, c in enumerate(CHARS)}
        self.rows = []
        for _ in range(n):
            line = f"{rnd.choice(SERVICES)}[{rnd.randint(10, 99)}]: {rnd.choice(EVENTS)} {rnd.randint(0, 9)}"
            self.rows.append([index[c] for c in line][:BLOCK])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids = self.rows[i]
        fill = BLOCK - len(ids)
        return {
            "input_ids": torch.tensor(ids + [PAD] * fill),
            "attention_mask": torch.tensor([1] * len(ids) + [0] * fill),
            "labels": torch.tensor(ids + [-100] * fill),
        }


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    logits, labels = logits[:, :-1].astype(np.float64), labels[:, 1:]
    keep = labels != -100
    logits, labels = logits[keep], labels[keep]
    shifted = logits - logits.max(-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    nll = -logp[np.arange(len(labels)), labels].mean()
    return {"perplexity": float(np.exp(nll)), "token_accuracy": float((logits.argmax(-1) == labels).mean())}


def main():
    set_seed(3)
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=len(CHARS) + 1, n_positions=BLOCK, n_embd=48, n_layer=2, n_head=4,
        bos_token_id=PAD, eos_token_id=PAD, pad_token_id=PAD, use_cache=False,
    ))
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            num_train_epochs=2,
            learning_rate=2e-3,
            warmup_steps=5,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=64,
            eval_strategy="epoch",
            save_strategy="no",
            logging_steps=20,
            report_to=[],
            disable_tqdm=True,
            fp16=torch.cuda.is_available(),
        )
        trainer = Trainer(
            model=model,
            args=args,
            train_dataset=LogLines(1000, 0),
            eval_dataset=LogLines(1000, 1),
            compute_metrics=compute_metrics,
        )
        trainer.train()
        print(trainer.evaluate())


if __name__ == "__main__":
    main()
