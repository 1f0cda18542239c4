import random
import sys

import torch
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import AutoModelForCausalLM, AutoTokenizer, get_linear_schedule_with_warmup

CKPT = "gpt2"
EPOCHS = 4
BATCH = 16
ACCUM = 2
LR = 3e-5

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
tokenizer = AutoTokenizer.from_pretrained(CKPT)
tokenizer.pad_token = tokenizer.eos_token
model = AutoModelForCausalLM.from_pretrained(CKPT).to(device)
model.config.pad_token_id = tokenizer.pad_token_id


def read_haikus(path):
    """one haiku per line, verses divided by ' / '"""
    with open(path, encoding="utf-8") as f:
        poems = [line.strip() for line in f if line.count("/") == 2]
    poems = [p.replace(" / ", "\n") + tokenizer.eos_token for p in poems]
    random.Random(0).shuffle(poems)
    return poems


def collate(poems):
    batch = tokenizer(poems, padding=True, truncation=True, max_length=64, return_tensors="pt")
    labels = batch["input_ids"].clone()
    labels[labels == tokenizer.pad_token_id] = -100
    batch["labels"] = labels
    return batch


@torch.no_grad()
def perplexity(loader):
    model.eval()
    nll, n = 0.0, 0
    for batch in loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        k = (batch["labels"][:, 1:] != -100).sum().item()
        nll += model(**batch).loss.item() * k
        n += k
    return float(torch.exp(torch.tensor(nll / n)))


@torch.no_grad()
def write(start):
    model.eval()
    enc = tokenizer(start, return_tensors="pt").to(device)
    out = model.generate(**enc, do_sample=True, top_p=0.92, temperature=0.9, max_new_tokens=60,
                         eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    return tokenizer.decode(out[0], skip_special_tokens=True)


def main():
    poems = read_haikus(sys.argv[1])
    n_val = len(poems) // 20
    train = DataLoader(poems[n_val:], batch_size=BATCH, shuffle=True, collate_fn=collate)
    val = DataLoader(poems[:n_val], batch_size=BATCH, collate_fn=collate)

    optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
    total = EPOCHS * (len(train) // ACCUM)
    scheduler = get_linear_schedule_with_warmup(optimizer, int(0.05 * total), total)

    for epoch in range(EPOCHS):
        model.train()
        bar = tqdm(train)
        for i, batch in enumerate(bar):
            batch = {k: v.to(device) for k, v in batch.items()}
            loss = model(**batch).loss / ACCUM
            loss.backward()
            if (i + 1) % ACCUM == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            bar.set_description(f"{epoch} {loss.item() * ACCUM:.3f}")
        optimizer.zero_grad()
        print("val ppl", perplexity(val))
        for start in ("autumn", "old pond", "the train"):
            print(write(start), "\n--")
    model.save_pretrained("haiku-gpt2")


if __name__ == "__main__":
    main()
