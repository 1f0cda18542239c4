"""Route support tickets to a queue with a small BERT trained from scratch."""
import io

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

QUEUES = ["billing", "network", "hardware", "account"]
WORDS = {
    0: "invoice charge refund payment price card".split(),
    1: "wifi router latency vpn dns packet".split(),
    2: "screen battery keyboard fan disk laptop".split(),
    3: "password login email profile locked reset".split(),
}
FILLER = "please help my the is not since yesterday again urgent we cannot with and".split()


def export_csv(n, seed):
    """What the ticket system exports: untriaged tickets have an empty queue."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        q = int(rng.integers(4))
        words = list(rng.choice(WORDS[q], 3)) + list(rng.choice(FILLER, 6))
        rng.shuffle(words)
        rows.append((" ".join(words), q if rng.random() > 0.05 else ""))
    return "text,queue\n" + "\n".join(f"{t},{q}" for t, q in rows)


def load(n, seed):
    table = np.genfromtxt(io.StringIO(export_csv(n, seed)), delimiter=",", names=True, dtype=None, encoding="utf8",
                          filling_values={"queue": np.nan}, converters={"queue": lambda s: float(s or "nan")})
    return table[~np.isnan(table["queue"])]


class TicketDataset(torch.utils.data.Dataset):
    def __init__(self, tab, vocab, max_len=12):
        self.ids = [[2] + [vocab.get(w, 1) for w in t.split()][: max_len - 1] for t in tab["text"]]
        self.max_len = max_len
        self.labels = tab["queue"].tolist()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = self.ids[i]
        pad = self.max_len - len(ids)
        return {
            "input_ids": torch.tensor(ids + [0] * pad),
            "attention_mask": torch.tensor([1] * len(ids) + [0] * pad),
            "labels": torch.tensor(self.labels[i]),
        }


def compute_metrics(p):
    preds = np.argmax(p.predictions, axis=-1)
    return {"accuracy": float((preds == p.label_ids).mean())}


def main():
    train_tab, eval_tab = load(480, 0), load(160, 1)
    vocab = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2}
    for text in train_tab["text"]:
        for w in text.split():
            vocab.setdefault(w, len(vocab))

    is_regression = train_tab["queue"].dtype in ["float32", "float64"]
    num_labels = 1 if is_regression else len(np.unique(train_tab["queue"]))

    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(vocab), hidden_size=64, num_hidden_layers=1, num_attention_heads=4,
                        intermediate_size=96, max_position_embeddings=16, num_labels=num_labels)
    model = BertForSequenceClassification(config)

    args = TrainingArguments(
        output_dir="out", num_train_epochs=4, per_device_train_batch_size=16, per_device_eval_batch_size=64,
        learning_rate=3e-3, logging_steps=28, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
    )
    trainer = Trainer(model=model, args=args, train_dataset=TicketDataset(train_tab, vocab),
                      eval_dataset=TicketDataset(eval_tab, vocab), compute_metrics=compute_metrics)
    trainer.train()
    print({k: round(v, 3) for k, v in trainer.evaluate().items() if "loss" in k or "accuracy" in k})


if __name__ == "__main__":
    main()
