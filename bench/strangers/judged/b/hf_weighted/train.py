"""Trainer subclass: class-weighted loss, layer-wise learning rates, frozen embeddings, macro-F1."""
import tempfile

import numpy as np
import torch
from sklearn.metrics import f1_score
from torch import nn
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForSequenceClassification, EvalPrediction, Trainer, TrainingArguments,
                          set_seed)

VOCAB, PAD, CLS = 60, 0, 1


class Logs(Dataset):
    """Synthetic log lines; class 2 (incident) is rare and depends on an ordered pair of tokens."""

    def __init__(self, n, seed):
        r = np.random.default_rng(seed)
        self.rows = []
        for y in r.choice(3, n, p=[0.6, 0.3, 0.1]):
            ids = r.integers(12, VOCAB, r.integers(6, 16))
            if y == 1:
                ids[r.integers(len(ids))] = 5
            elif y == 2:
                a, b = np.sort(r.choice(len(ids), 2, replace=False))
                ids[a], ids[b] = 6, 7
            self.rows.append(([CLS, *ids.tolist()], int(y)))

    def counts(self):
        return np.bincount([y for _, y in self.rows], minlength=3)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, y = self.rows[i]
        return {"input_ids": ids, "labels": y}


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.tensor([r["input_ids"] + [PAD] * (width - len(r["input_ids"])) for r in rows])
    return {"input_ids": ids, "attention_mask": ids.ne(PAD).long(), "labels": torch.tensor([r["labels"] for r in rows])}


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weight, depth_decay=0.8, **kw):
        super().__init__(*args, **kw)
        self.class_weight, self.depth_decay = class_weight, depth_decay

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        labels = inputs["labels"]
        out = model(**{k: v for k, v in inputs.items() if k != "labels"})
        loss = nn.functional.cross_entropy(out.logits, labels, weight=self.class_weight.to(out.logits.device))
        return (loss, out) if return_outputs else loss

    def create_optimizer(self, model=None):
        if self.optimizer is None:
            layers = self.model.bert.encoder.layer
            groups = [{"params": list(l.parameters()), "lr": self.args.learning_rate * self.depth_decay ** (len(layers) - 1 - i)}
                      for i, l in enumerate(layers)]
            rest = [p for n, p in self.model.named_parameters() if ".layer." not in n and p.requires_grad]
            self.optimizer = torch.optim.AdamW(groups + [{"params": rest, "lr": self.args.learning_rate}], weight_decay=0.01)
        return self.optimizer


def metrics(p: EvalPrediction):
    guess = p.predictions.argmax(-1)
    return {"macro_f1": f1_score(p.label_ids, guess, average="macro"), "accuracy": float((guess == p.label_ids).mean())}


if __name__ == "__main__":
    set_seed(4)
    train, dev = Logs(900, 1), Logs(240, 2)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=24, num_labels=3, pad_token_id=PAD))
    # position and type embeddings stay at their initial values on purpose; word embeddings are learned
    for emb in (model.bert.embeddings.position_embeddings, model.bert.embeddings.token_type_embeddings):
        emb.weight.requires_grad_(False)
    weight = torch.tensor(train.counts().sum() / (3 * train.counts()), dtype=torch.float32)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(out, num_train_epochs=4, per_device_train_batch_size=30, per_device_eval_batch_size=120,
                                 learning_rate=3e-3, warmup_steps=10, lr_scheduler_type="linear", eval_strategy="epoch",
                                 save_strategy="no", logging_steps=30, report_to=[], disable_tqdm=True, seed=4,
                                 use_cpu=not torch.cuda.is_available())
        WeightedTrainer(model=model, args=args, train_dataset=train, eval_dataset=dev, data_collator=collate,
                        compute_metrics=metrics, class_weight=weight).train()
