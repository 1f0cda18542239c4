"""Route support tickets to teams. Rare teams get a larger weight in the loss.

A small BERT from scratch; there is only one segment, so the segment embedding stays as it is (frozen).
"""
import random
import tempfile

import numpy as np
import torch
from sklearn.metrics import f1_score
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, EarlyStoppingCallback, Trainer, TrainingArguments, set_seed

TEAMS = ["billing", "network", "hardware", "accounts"]
SHARE = [0.55, 0.25, 0.14, 0.06]
PAD, CLS, FIRST, VOCAB = 0, 1, 2, 90


class Tickets(Dataset):
    def __init__(self, n, seed):
        r = random.Random(seed)
        self.items = []
        for _ in range(n):
            team = r.choices(range(4), SHARE)[0]
            body = [r.randrange(FIRST, VOCAB) for _ in range(r.randint(5, 16))]
            for _ in range(3):
                body[r.randrange(len(body))] = FIRST + team * 5 + r.randrange(5)
            self.items.append(([CLS] + body, team))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        ids, team = self.items[i]
        return {"input_ids": ids, "labels": team}


def collate(rows):
    ids = pad_sequence([torch.tensor(r["input_ids"]) for r in rows], batch_first=True, padding_value=PAD)
    return {
        "input_ids": ids,
        "attention_mask": (ids != PAD).long(),
        "labels": torch.tensor([r["labels"] for r in rows]),
    }


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights, **kw):
        super().__init__(*args, **kw)
        self.class_weights = class_weights
        # our loss is a mean per micro batch, let the Trainer divide by the accumulation steps
        self.model_accepts_loss_kwargs = False

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        out = model(**{k: v for k, v in inputs.items() if k != "labels"})
        loss = nn.functional.cross_entropy(out.logits, labels, weight=self.class_weights.to(out.logits))
        return (loss, out) if return_outputs else loss


def compute_metrics(p):
    guess = np.argmax(p.predictions, -1)
    return {"macro_f1": f1_score(p.label_ids, guess, average="macro"), "acc": float((guess == p.label_ids).mean())}


def main():
    set_seed(22)
    train, dev, test = Tickets(500, 1), Tickets(150, 2), Tickets(150, 3)
    counts = np.bincount([t for _, t in train.items], minlength=4)
    weights = torch.tensor(np.sqrt(counts.sum() / (4 * counts)), dtype=torch.float32)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=32, num_labels=4, pad_token_id=PAD,
    ))
    model.bert.embeddings.token_type_embeddings.weight.requires_grad_(False)
    trainer = WeightedTrainer(
        model=model,
        args=TrainingArguments(
            output_dir=tempfile.mkdtemp(), num_train_epochs=6, per_device_train_batch_size=16,
            gradient_accumulation_steps=2, learning_rate=4e-3, warmup_steps=5, weight_decay=0.01,
            eval_strategy="epoch", save_strategy="epoch", save_total_limit=1, load_best_model_at_end=True,
            metric_for_best_model="macro_f1", greater_is_better=True, logging_strategy="epoch",
            report_to=[], use_cpu=not torch.cuda.is_available(), disable_tqdm=True, seed=22, remove_unused_columns=False,
        ),
        train_dataset=train, eval_dataset=dev, data_collator=collate, compute_metrics=compute_metrics,
        class_weights=weights, callbacks=[EarlyStoppingCallback(3)],
    )
    trainer.train()
    print({k: round(v, 4) for k, v in trainer.evaluate(test, metric_key_prefix="test").items()})


if __name__ == "__main__":
    main()
