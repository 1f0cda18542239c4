"""Fine-tune DistilBERT on our support-ticket intents (8 classes), plain PyTorch loop."""
import pandas as pd
import torch
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from torch.optim import AdamW
from torch.utils.data import DataLoader, Dataset
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding,
                          get_linear_schedule_with_warmup, set_seed)

CKPT = "distilbert-base-uncased"
EPOCHS, BS, LR = 4, 32, 3e-5
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
set_seed(13)

df = pd.read_csv("tickets.csv").dropna(subset=["body", "intent"])
intents = sorted(df.intent.unique())
df["label"] = df.intent.map({n: i for i, n in enumerate(intents)})
train_df, val_df = train_test_split(df, test_size=0.15, stratify=df.label, random_state=13)

tokenizer = AutoTokenizer.from_pretrained(CKPT)


class Tickets(Dataset):
    def __init__(self, frame):
        self.enc = tokenizer(frame.body.tolist(), truncation=True, max_length=256)
        self.labels = frame.label.tolist()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        item = {k: v[i] for k, v in self.enc.items()}
        item["labels"] = self.labels[i]
        return item


collate = DataCollatorWithPadding(tokenizer)
train_dl = DataLoader(Tickets(train_df), batch_size=BS, shuffle=True, collate_fn=collate)
val_dl = DataLoader(Tickets(val_df), batch_size=2 * BS, collate_fn=collate)

# dropout raised a bit because the set is small and overfits after epoch 2
model = AutoModelForSequenceClassification.from_pretrained(
    CKPT, num_labels=len(intents), dropout=0.2, attention_dropout=0.2, seq_classif_dropout=0.3)
model.to(device)

decay = [p for n, p in model.named_parameters() if p.ndim > 1]
no_decay = [p for n, p in model.named_parameters() if p.ndim <= 1]
optimizer = AdamW([{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=LR)
total = EPOCHS * len(train_dl)
scheduler = get_linear_schedule_with_warmup(optimizer, int(0.06 * total), total)


def predict(loader):
    preds, gold = [], []
    model.eval()
    with torch.inference_mode():
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            logits = model(**batch).logits
            preds += logits.argmax(-1).tolist()
            gold += batch["labels"].tolist()
    return preds, gold


best = 0.0
for epoch in range(EPOCHS):
    running = 0.0
    for batch in train_dl:
        batch = {k: v.to(device) for k, v in batch.items()}
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        running += loss.item()

    preds, gold = predict(val_dl)
    f1 = f1_score(gold, preds, average="macro")
    print(f"epoch {epoch + 1}: train loss {running / len(train_dl):.4f}  val macro-F1 {f1:.4f}")
    if f1 > best:
        best = f1
        model.save_pretrained("intent_model")
        tokenizer.save_pretrained("intent_model")
