"""Route support tickets to a team with a small BERT. Weights come from our own pretraining run."""
import os
import random

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

TEAMS = ["billing", "login", "shipping", "returns", "other"]
CKPT = "checkpoints/tiny-bert-tickets"
MAX_LEN = 24

HINTS = {
    "billing": ["invoice", "charged", "refund", "card"],
    "login": ["password", "account", "locked", "code"],
    "shipping": ["parcel", "courier", "late", "tracking"],
    "returns": ["return", "label", "broken", "exchange"],
    "other": ["question", "idea", "thanks", "hours"],
}
COMMON = "hello i have a problem with my order please answer soon the".split()
VOCAB = {w: i for i, w in enumerate(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + COMMON + [w for t in TEAMS for w in HINTS[t]])}


def encode(text):
    ids = [VOCAB["[CLS]"]] + [VOCAB.get(w, 1) for w in text.split()][: MAX_LEN - 2] + [VOCAB["[SEP]"]]
    mask = [1] * len(ids) + [0] * (MAX_LEN - len(ids))
    return ids + [0] * (MAX_LEN - len(ids)), mask


class Tickets(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            team = rng.choice(TEAMS)
            words = rng.choices(COMMON, k=8) + rng.choices(HINTS[team], k=3)
            rng.shuffle(words)
            self.rows.append((" ".join(words), TEAMS.index(team)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, label = self.rows[i]
        ids, mask = encode(text)
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "labels": torch.tensor(label)}


def load_model():
    config = BertConfig(
        vocab_size=len(VOCAB), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=64,
    )
    if os.path.isdir(CKPT):
        return BertForSequenceClassification.from_pretrained(CKPT, config=config)
    return BertForSequenceClassification(config)


def main():
    torch.manual_seed(0)
    train_dl = DataLoader(Tickets(800, 0), batch_size=16, shuffle=True)
    test_dl = DataLoader(Tickets(200, 1), batch_size=50)
    model = load_model()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    epochs = 2
    sched = get_linear_schedule_with_warmup(opt, 20, epochs * len(train_dl))
    for epoch in range(epochs):
        model.train()
        for batch in train_dl:
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
        model.eval()
        correct = 0
        with torch.no_grad():
            for batch in test_dl:
                labels = batch.pop("labels")
                correct += (model(**batch).logits.argmax(-1) == labels).sum().item()
        print(f"epoch {epoch}: loss {loss.item():.3f} acc {correct / len(test_dl.dataset):.3f}")


if __name__ == "__main__":
    main()
