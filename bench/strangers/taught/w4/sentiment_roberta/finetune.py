"""Sentiment classifier on product reviews with a small transformer (own weights, HF classes)."""
import random

import torch
from torch.utils.data import DataLoader
from transformers import RobertaConfig, RobertaForSequenceClassification, get_linear_schedule_with_warmup

GOOD = "great lovely solid fast happy perfect works recommend".split()
BAD = "broken slow awful refund cheap useless dead disappointed".split()
FILL = "the a it was this phone case cable box very really just and but shipping price arrived".split()
VOCAB = {w: i + 4 for i, w in enumerate(sorted(set(GOOD + BAD + FILL)))}
PAD, CLS = 1, 0
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_reviews(n, rng):
    out = []
    for _ in range(n):
        y = rng.random() < 0.5
        words = rng.choices(FILL, k=rng.randint(6, 14)) + rng.choices(GOOD if y else BAD, k=2)
        rng.shuffle(words)
        out.append(([CLS] + [VOCAB[w] for w in words], int(y)))
    return out


def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([i + [PAD] * (width - len(i)) for i, _ in batch])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": torch.tensor([y for _, y in batch])}


def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            right += (model(**batch).logits.argmax(-1) == batch["labels"]).sum().item()
    return right / len(loader.dataset)


def main(epochs=3, lr=5e-4, max_grad_norm=1.0):
    rng = random.Random(0)
    torch.manual_seed(0)
    train = DataLoader(make_reviews(800, rng), batch_size=32, shuffle=True, collate_fn=collate)
    dev = DataLoader(make_reviews(200, rng), batch_size=100, collate_fn=collate)

    cfg = RobertaConfig(vocab_size=len(VOCAB) + 4, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=128, max_position_embeddings=64, num_labels=2)
    model = RobertaForSequenceClassification(cfg).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    scheduler = get_linear_schedule_with_warmup(optimizer, 10, epochs * len(train))
    scaler = torch.amp.GradScaler(device.type)

    for epoch in range(epochs):
        model.train()
        running = torch.zeros((), device=device)
        for batch in train:
            batch = {k: v.to(device) for k, v in batch.items()}
            with torch.autocast(device.type, dtype=torch.float16):
                loss = model(**batch).loss
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
            scaler.step(optimizer)
            scheduler.step()
            running += loss.detach()
        scaler.update()
        print(f"epoch {epoch}: loss {running.item() / len(train):.4f} dev acc {evaluate(model, dev):.3f}")


if __name__ == "__main__":
    main()
