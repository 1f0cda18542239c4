import tempfile

import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

from distil import DistilArguments, DistilTrainer

VOCAB, LEN = 40, 12


class MarkerCount(Dataset):
    """Which of three marker tokens occurs most often?"""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(5, VOCAB, (n, LEN), generator=g)
        self.labels = torch.randint(0, 3, (n,), generator=g)
        where = torch.rand(n, LEN, generator=g).argsort(1)[:, :4]
        marks = (self.labels + 1)[:, None].repeat(1, 4)
        marks[:, 3] = torch.randint(1, 4, (n,), generator=g)
        self.ids.scatter_(1, where, marks)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones(LEN, dtype=torch.long), "labels": self.labels[i]}


def bert(dim, layers):
    return DistilBertForSequenceClassification(DistilBertConfig(
        vocab_size=VOCAB, dim=dim, hidden_dim=2 * dim, n_layers=layers, n_heads=2, max_position_embeddings=LEN,
        num_labels=3, initializer_range=0.1))


def accuracy(p):
    return {"acc": float((p.predictions.argmax(-1) == p.label_ids).mean())}


def main():
    set_seed(61)
    train, dev = MarkerCount(768, 0), MarkerCount(200, 1)
    with tempfile.TemporaryDirectory() as tmp:
        common = dict(output_dir=tmp, per_device_train_batch_size=32, learning_rate=2e-3, report_to=[], use_cpu=True,
                      save_strategy="no", disable_tqdm=True, seed=61, logging_steps=24)
        teacher = bert(48, 2)
        tr = Trainer(teacher, TrainingArguments(num_train_epochs=4, **common), train_dataset=train, eval_dataset=dev,
                     compute_metrics=accuracy)
        tr.train()
        print("teacher", tr.evaluate()["eval_acc"])

        student = bert(16, 1)
        args = DistilArguments(num_train_epochs=4, alpha=0.3, temperature=3.0, **common)
        st = DistilTrainer(student, args, train_dataset=train, eval_dataset=dev, compute_metrics=accuracy, teacher=teacher)
        st.train()
        print("student", st.evaluate()["eval_acc"])


if __name__ == "__main__":
    main()
