"""Token classification with a small DistilBERT trained from scratch."""
import random
import tempfile

import numpy as np
import torch
from transformers import (DistilBertConfig, DistilBertForTokenClassification, Trainer, TrainingArguments, set_seed)

TAGS = ["DET", "NOUN", "VERB", "ADJ", "ADP"]
LEXICON = {
    "DET": ["the", "a", "this", "each"], "NOUN": ["dog", "river", "idea", "run", "light", "paper"],
    "VERB": ["sees", "run", "light", "takes", "paper"], "ADJ": ["light", "green", "slow"],
    "ADP": ["on", "under", "with"],
}
TEMPLATES = ["DET NOUN VERB", "DET ADJ NOUN VERB DET NOUN", "NOUN VERB ADP DET NOUN",
             "DET NOUN ADP DET ADJ NOUN VERB DET NOUN ADP DET NOUN", "DET ADJ ADJ NOUN VERB"]
VOCAB = {w: i + 1 for i, w in enumerate(sorted({w for ws in LEXICON.values() for w in ws}))}
MAX_LEN = 16


def sample_sentence(rnd):
    tags = rnd.choice(TEMPLATES).split()
    return [(rnd.choice(LEXICON[t]), t) for t in tags]


def encode(sentence):
    ids = [VOCAB[w] for w, _ in sentence]
    labels = [TAGS.index(t) for _, t in sentence]
    gap = MAX_LEN - len(ids)
    return {
        "input_ids": torch.tensor(ids + [0] * gap),
        "attention_mask": torch.tensor([1] * len(ids) + [0] * gap),
        "labels": torch.tensor(labels + [-100] * gap),
    }


class Sentences(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        rnd = random.Random(seed)
        self.rows = [encode(sample_sentence(rnd)) for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, k):
        return self.rows[k]


def tagging_scores(eval_pred):
    logits, gold = eval_pred
    guess = np.argmax(logits, axis=-1)
    per_tag = {}
    for i, tag in enumerate(TAGS):
        tp = np.logical_and(guess == i, gold == i).sum()
        per_tag[f"recall_{tag}"] = float(tp / max((gold == i).sum(), 1))
    return {"token_accuracy": float(np.mean(guess == gold)), **per_tag}


def main():
    set_seed(0)
    config = DistilBertConfig(vocab_size=len(VOCAB) + 1, dim=48, hidden_dim=96, n_layers=2, n_heads=4,
                              max_position_embeddings=MAX_LEN, num_labels=len(TAGS), pad_token_id=0)
    model = DistilBertForTokenClassification(config)
    with tempfile.TemporaryDirectory() as tmp:
        args = TrainingArguments(output_dir=tmp, num_train_epochs=5, per_device_train_batch_size=16,
                                 per_device_eval_batch_size=64, learning_rate=2e-3, eval_strategy="epoch",
                                 save_strategy="no", report_to="none", logging_steps=40, disable_tqdm=True, use_cpu=True)
        trainer = Trainer(model=model, args=args, train_dataset=Sentences(480, 1), eval_dataset=Sentences(200, 2),
                          compute_metrics=tagging_scores)
        trainer.train()
        result = trainer.evaluate()
    for k in sorted(result):
        if "accuracy" in k or "recall" in k or k == "eval_loss":
            print(f"{k:24s} {result[k]:.3f}")


if __name__ == "__main__":
    main()
