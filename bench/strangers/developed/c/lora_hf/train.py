"""LoRA by hand + a Trainer with class weights. First a full-weight warm-up on domain A, then adapters on domain B."""
import random
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

from lora import inject


class Tickets(Dataset):
    def __init__(self, n, seed, shift=0, urgent=0.25):
        r = random.Random(seed)
        self.rows = []
        for _ in range(n):
            y = int(r.random() < urgent)
            ids = [r.randrange(60, 120) for _ in range(14)]
            for k in r.sample(range(14), 5):
                ids[k] = 5 + shift + 10 * y + r.randrange(10)
            self.rows.append({"input_ids": [1, *ids, 2], "attention_mask": [1] * 16, "labels": y})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {k: torch.tensor(v) for k, v in self.rows[i].items()}


class WeightedTrainer(Trainer):
    def __init__(self, *a, class_weights, **kw):
        super().__init__(*a, **kw)
        self.class_weights = class_weights

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        out = model(**inputs)
        loss = torch.nn.functional.cross_entropy(out.logits, labels, weight=self.class_weights.to(out.logits.device))
        return (loss, out) if return_outputs else loss


def balanced_accuracy(p):
    pred = np.argmax(p.predictions, -1)
    return {"bal_acc": float(np.mean([(pred[p.label_ids == c] == c).mean() for c in (0, 1)]))}


def fit(model, train, test, lr, epochs, out):
    args = TrainingArguments(
        output_dir=out, learning_rate=lr, num_train_epochs=epochs, per_device_train_batch_size=32,
        save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True, seed=0,
    )
    counts = torch.bincount(torch.tensor([r["labels"] for r in train.rows]), minlength=2)
    t = WeightedTrainer(model=model, args=args, train_dataset=train, eval_dataset=test,
                        compute_metrics=balanced_accuracy, class_weights=counts.sum() / (2.0 * counts))
    t.train()
    return t.evaluate()["eval_bal_acc"]


def main():
    set_seed(0)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=120, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=32, num_labels=2))
    with tempfile.TemporaryDirectory() as out:
        print("domain A", fit(model, Tickets(600, 1), Tickets(200, 2), 1e-3, 3, out))
        inject(model, r=4)
        model.classifier.requires_grad_(True)
        n = sum(p.numel() for p in model.parameters() if p.requires_grad)
        print("trainable:", n, "of", sum(p.numel() for p in model.parameters()))
        print("domain B", fit(model, Tickets(600, 3, shift=20), Tickets(200, 4, shift=20), 3e-3, 3, out))


if __name__ == "__main__":
    main()
