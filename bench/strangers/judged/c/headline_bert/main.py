"""Train a small BERT from scratch on four news topics with the Hugging Face Trainer."""
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForSequenceClassification, Trainer, TrainingArguments,
                          set_seed)

TOPICS = {
    "world": "minister border treaty election parliament embassy summit".split(),
    "sports": "coach league goal match season striker medal".split(),
    "business": "shares bank profit merger market investor quarter".split(),
    "science": "telescope protein climate genome particle orbit vaccine".split(),
}
FILLER = "the a in of after new says over with more two on as for".split()
PAD, CLS, SEP = 0, 1, 2
label2id = {name: i for i, name in enumerate(TOPICS)}
vocab = {w: i + 3 for i, w in enumerate(sorted(set(FILLER).union(*TOPICS.values())))}


class Headlines(Dataset):
    def __init__(self, n, seed, max_len=14):
        rng = np.random.default_rng(seed)
        names = list(TOPICS)
        self.rows = []
        for _ in range(n):
            topic = names[rng.integers(len(names))]
            words = list(rng.choice(TOPICS[topic], 3)) + list(rng.choice(FILLER, rng.integers(3, 8)))
            rng.shuffle(words)
            ids = [CLS] + [vocab[w] for w in words] + [SEP]
            mask = [1] * len(ids) + [0] * (max_len - len(ids))
            ids = ids + [PAD] * (max_len - len(ids))
            self.rows.append({"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask),
                              "labels": torch.tensor(label2id[topic])})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def compute_metrics(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def model_init():
    config = BertConfig(
        vocab_size=len(vocab) + 3,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
        pad_token_id=PAD,
        problem_type="single_label_classification",
    )
    return BertForSequenceClassification(config)


def main():
    set_seed(13)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            num_train_epochs=6,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=64,
            learning_rate=3e-3,
            warmup_steps=5,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            seed=13,
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(model_init=model_init, args=args, train_dataset=Headlines(512, seed=0),
                          eval_dataset=Headlines(128, seed=1), compute_metrics=compute_metrics)
        trainer.train()
        print(trainer.evaluate())


if __name__ == "__main__":
    main()
