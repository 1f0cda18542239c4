"""Ticket priority with a small BERT, rare classes weighted up, Hugging Face Trainer."""
import random
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

PHRASES = {
    0: ["thanks for info", "small question about colour", "nice feature idea"],
    1: ["report page slow today", "export shows wrong total", "button not aligned"],
    2: ["production down now", "all data lost", "payment fails for everyone"],
}
WORDS = sorted({w for ps in PHRASES.values() for p in ps for w in p.split()} | set("hi team dear please regards sorry again".split()))
VOCAB = {w: i + 3 for i, w in enumerate(WORDS)}
PAD, CLS, SEP = 0, 1, 2
FILL = "hi team dear please regards sorry again".split()


class Tickets(Dataset):
    def __init__(self, n, seed):
        rnd = random.Random(seed)
        self.rows = []
        for _ in range(n):
            label = rnd.choices([0, 1, 2], weights=[6, 3, 1])[0]
            words = rnd.choices(FILL, k=rnd.randint(1, 6)) + rnd.choice(PHRASES[label]).split() + rnd.choices(FILL, k=rnd.randint(0, 4))
            self.rows.append(([CLS] + [VOCAB[w] for w in words] + [SEP], label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, label = self.rows[i]
        return {"input_ids": ids, "label": label}

    def class_weights(self):
        counts = np.bincount([label for _, label in self.rows], minlength=3)
        return torch.tensor(len(self.rows) / (3 * counts), dtype=torch.float32)


def collate(rows):
    n = max(len(r["input_ids"]) for r in rows)
    ids = torch.full((len(rows), n), PAD)
    for k, r in enumerate(rows):
        ids[k, : len(r["input_ids"])] = torch.tensor(r["input_ids"])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": torch.tensor([r["label"] for r in rows])}


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights, **kw):
        super().__init__(*args, **kw)
        self.class_weights = class_weights.to(self.args.device)

    def compute_loss(self, model, inputs, return_outputs=False, **kw):
        labels = inputs["labels"]
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        loss = F.cross_entropy(outputs.logits, labels, weight=self.class_weights)
        return (loss, outputs) if return_outputs else loss


def keep_classes(logits, labels):
    return logits.argmax(-1)


def metrics(p):
    return {"macro_f1": f1_score(p.label_ids, p.predictions, average="macro"), "accuracy": float((p.predictions == p.label_ids).mean())}


def main():
    set_seed(71)
    train, valid = Tickets(800, 0), Tickets(300, 1)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(VOCAB) + 3, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=32, num_labels=3, pad_token_id=PAD,
    ))
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            out, num_train_epochs=3, learning_rate=1e-3, warmup_steps=10, per_device_train_batch_size=32,
            per_device_eval_batch_size=100, eval_strategy="epoch", save_strategy="no", logging_strategy="epoch",
            label_names=["labels"], report_to=[], disable_tqdm=True,
        )
        WeightedTrainer(
            model=model, args=args, train_dataset=train, eval_dataset=valid, data_collator=collate,
            compute_metrics=metrics, preprocess_logits_for_metrics=keep_classes, class_weights=train.class_weights(),
        ).train()


if __name__ == "__main__":
    main()
