"""Imbalanced intent classification with a Trainer whose loss is weighted by inverse class frequency."""
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import balanced_accuracy_score, f1_score
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed

from modeling import CnnTextClassifier, CnnTextConfig


class Intents(Dataset):
    def __init__(self, n, seed, p=(0.75, 0.17, 0.08), length=14):
        rng = np.random.default_rng(seed)
        self.y = rng.choice(len(p), n, p=p)
        self.x = rng.integers(1, 80, (n, length))
        cues = [(10, 11), (20, 21), (30, 31)]
        for row, label in zip(self.x, self.y):
            if rng.random() < 0.9:
                at = rng.integers(0, length - 2)
                row[at:at + 2] = cues[label]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(self.x[i]), "labels": torch.tensor(int(self.y[i]))}


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights=None, **kw):
        super().__init__(*args, **kw)
        self.class_weights = class_weights

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        out = model(input_ids=inputs["input_ids"])
        loss = F.cross_entropy(out.logits, labels, weight=self.class_weights.to(out.logits.device))
        return (loss, out) if return_outputs else loss


def metrics(pred):
    guess = pred.predictions.argmax(-1)
    return {"balanced": balanced_accuracy_score(pred.label_ids, guess),
            "macro_f1": f1_score(pred.label_ids, guess, average="macro")}


def main():
    set_seed(61)
    train, dev = Intents(900, 1), Intents(300, 2)
    freq = np.bincount(train.y, minlength=3)
    weights = torch.tensor(len(train) / (3 * freq), dtype=torch.float32)

    args = TrainingArguments(
        output_dir="/tmp/intent-run", num_train_epochs=4, per_device_train_batch_size=32, learning_rate=5e-3,
        lr_scheduler_type="linear", warmup_steps=10, weight_decay=0.01, eval_strategy="epoch",
        save_strategy="no", logging_strategy="epoch", report_to=[], use_cpu=not torch.cuda.is_available(),
        disable_tqdm=True, seed=61,
    )
    trainer = WeightedTrainer(model=CnnTextClassifier(CnnTextConfig(num_labels=3)), args=args,
                              train_dataset=train, eval_dataset=dev, compute_metrics=metrics, class_weights=weights)
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
