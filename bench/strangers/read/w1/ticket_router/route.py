"""Routing of support tickets, rare classes weighted, two parameter groups, HF Trainer with a plain torch model."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import f1_score
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed

QUEUES = ["billing", "network", "hardware", "legal"]
PRIOR = [0.45, 0.3, 0.2, 0.05]


class Tickets(Dataset):
    def __init__(self, n, seed, vocab=120, length=16):
        rng = np.random.default_rng(seed)
        self.labels = rng.choice(len(QUEUES), size=n, p=PRIOR)
        topic = self.labels[:, None] * 25 + rng.integers(1, 26, (n, length))
        noise = rng.integers(1, vocab, (n, length))
        self.tokens = np.where(rng.random((n, length)) < 0.35, topic, noise)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(self.tokens[i]), "labels": torch.tensor(self.labels[i])}


class Router(nn.Module):
    def __init__(self, vocab=120, dim=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.encode = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU(), nn.Dropout(0.1))
        self.classify = nn.Linear(dim, len(QUEUES))

    def forward(self, input_ids, labels=None):
        return {"logits": self.classify(self.encode(self.embed(input_ids).mean(1)))}


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = nn.functional.cross_entropy(outputs["logits"], labels,
                                           weight=self.class_weights.to(labels.device))
        return (loss, outputs) if return_outputs else loss

    def create_optimizer(self, *args, **kwargs):
        if self.optimizer is None:
            plain = [p for n, p in self.model.named_parameters() if p.ndim < 2 or n.startswith("embed")]
            decay = [p for n, p in self.model.named_parameters() if p.ndim >= 2 and not n.startswith("embed")]
            self.optimizer = torch.optim.AdamW([
                {"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0},
            ], lr=self.args.learning_rate)
        return self.optimizer


def metrics(pred):
    guess = pred.predictions.argmax(-1)
    return {"macro_f1": f1_score(pred.label_ids, guess, average="macro"),
            "accuracy": float((guess == pred.label_ids).mean())}


if __name__ == "__main__":
    set_seed(19)
    train, val = Tickets(1200, 1), Tickets(300, 2)
    count = torch.bincount(torch.tensor(train.labels), minlength=len(QUEUES)).float()
    args = TrainingArguments(
        output_dir="/tmp/route_w1", num_train_epochs=4, per_device_train_batch_size=32, learning_rate=5e-3,
        per_device_eval_batch_size=100, warmup_steps=10, eval_strategy="epoch", save_strategy="no", report_to=[],
        use_cpu=not torch.cuda.is_available(), disable_tqdm=True, label_names=["labels"],
    )
    trainer = WeightedTrainer(model=Router(), args=args, train_dataset=train, eval_dataset=val,
                              compute_metrics=metrics, class_weights=count.sum() / (len(QUEUES) * count))
    trainer.train()
    print(trainer.evaluate())
