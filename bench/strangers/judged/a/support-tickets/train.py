"""Routing of support tickets with a small BERT trained from scratch; rare queues get a larger weight."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

QUEUES = ["billing", "outage", "account", "other"]
PRIOR = np.array([0.5, 0.1, 0.3, 0.1])


class Tickets(Dataset):
    def __init__(self, n, seed, vocab=80, length=12):
        world = np.random.default_rng(0)
        word_p = world.dirichlet(np.full(vocab - 3, 0.15), size=len(QUEUES))
        rng = np.random.default_rng(seed)
        self.labels = rng.choice(len(QUEUES), n, p=PRIOR)
        self.ids = np.stack([
            np.concatenate([[1], rng.choice(np.arange(3, vocab), length - 2, p=word_p[c]), [2]]) for c in self.labels
        ])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        ids = torch.tensor(self.ids[i])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": int(self.labels[i])}


class BalancedTrainer(Trainer):
    def __init__(self, *args, class_weights=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        scores = nn.functional.softmax(outputs.logits, dim=-1)
        criterion = nn.CrossEntropyLoss(weight=self.class_weights.to(scores.device))
        loss = criterion(scores.view(-1, self.model.config.num_labels), labels.view(-1))
        return (loss, outputs) if return_outputs else loss


def macro_recall(eval_pred):
    logits, labels = eval_pred
    pred = logits.argmax(-1)
    return {"macro_recall": float(np.mean([(pred[labels == c] == c).mean() for c in np.unique(labels)]))}


def main():
    set_seed(4)
    train, dev = Tickets(400, 1), Tickets(120, 2)
    freq = np.bincount(train.labels, minlength=len(QUEUES)) / len(train)
    weights = torch.tensor(1.0 / (len(QUEUES) * freq), dtype=torch.float32)

    config = BertConfig(vocab_size=80, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=64, max_position_embeddings=16, num_labels=len(QUEUES))
    args = TrainingArguments(
        output_dir="/tmp/tickets", num_train_epochs=3, per_device_train_batch_size=32,
        per_device_eval_batch_size=64, learning_rate=2e-3, eval_strategy="epoch", save_strategy="no",
        logging_steps=10, report_to=[], use_cpu=True, disable_tqdm=True, seed=4,
    )
    trainer = BalancedTrainer(
        model=BertForSequenceClassification(config), args=args, train_dataset=train, eval_dataset=dev,
        compute_metrics=macro_recall, class_weights=weights,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
