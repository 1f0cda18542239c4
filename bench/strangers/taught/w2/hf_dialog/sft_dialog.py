"""Fine-tune GPT-2 on customer dialogues (jsonl with a list of {"role", "text"} turns per line)."""
import argparse
import json

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, get_cosine_schedule_with_warmup

SPECIALS = {
    "pad_token": "<|pad|>",
    "additional_special_tokens": ["<|user|>", "<|agent|>", "<|end|>"],
}


def load_tokenizer(name):
    tok = AutoTokenizer.from_pretrained(name)
    tok.add_special_tokens(SPECIALS)
    tok.padding_side = "right"
    return tok


class Dialogues(Dataset):
    def __init__(self, path, tok, max_len):
        self.items = []
        with open(path) as f:
            for line in f:
                turns = json.loads(line)["turns"]
                ids, labels = [], []
                for t in turns:
                    piece = tok(f"<|{t['role']}|>{t['text']}<|end|>")["input_ids"]
                    ids += piece
                    # learn the agent's turns only
                    labels += piece if t["role"] == "agent" else [-100] * len(piece)
                self.items.append((ids[:max_len], labels[:max_len]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Collator:
    def __init__(self, pad_id):
        self.pad_id = pad_id

    def __call__(self, batch):
        width = max(len(ids) for ids, _ in batch)
        input_ids = torch.full((len(batch), width), self.pad_id)
        labels = torch.full((len(batch), width), -100)
        mask = torch.zeros(len(batch), width, dtype=torch.long)
        for r, (ids, lab) in enumerate(batch):
            input_ids[r, :len(ids)] = torch.tensor(ids)
            labels[r, :len(lab)] = torch.tensor(lab)
            mask[r, :len(ids)] = 1
        return {"input_ids": input_ids, "attention_mask": mask, "labels": labels}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="gpt2")
    p.add_argument("--train", default="data/train.jsonl")
    p.add_argument("--out", default="out/dialog-gpt2")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--bs", type=int, default=4)
    p.add_argument("--accum", type=int, default=8)
    p.add_argument("--lr", type=float, default=5e-5)
    p.add_argument("--max_len", type=int, default=512)
    args = p.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tok = load_tokenizer(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model)
    model.config.pad_token_id = tok.pad_token_id
    model.to(device)

    loader = DataLoader(Dialogues(args.train, tok, args.max_len), args.bs, shuffle=True,
                        collate_fn=Collator(tok.pad_token_id), drop_last=True)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    steps = args.epochs * (len(loader) // args.accum)
    sched = get_cosine_schedule_with_warmup(opt, int(0.05 * steps), steps)

    done = 0
    for epoch in range(args.epochs):
        model.train()
        opt.zero_grad()
        for i, batch in enumerate(loader, 1):
            batch = {k: v.to(device) for k, v in batch.items()}
            loss = model(**batch).loss
            (loss / args.accum).backward()
            if i % args.accum == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
                done += 1
                if done % 20 == 0:
                    print(f"epoch {epoch} step {done} loss {loss.item():.4f}")
        model.save_pretrained(args.out)
        tok.save_pretrained(args.out)


if __name__ == "__main__":
    main()
