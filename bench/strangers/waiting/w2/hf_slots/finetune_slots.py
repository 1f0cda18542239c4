"""Teach a small causal LM a slot format with new control tokens."""
import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

CITIES = ["rome", "oslo", "lima", "cairo", "tokyo"]
DAYS = ["monday", "tuesday", "friday", "sunday"]
BASE_WORDS = "book a flight to on please i want go the train for me".split() + CITIES + DAYS
NEW_TOKENS = ["<slots>", "<city>", "<day>", "</slots>"]


def base_tokenizer():
    vocab = {w: i for i, w in enumerate(["<unk>", "<pad>", "<eos>"] + sorted(set(BASE_WORDS)))}
    tok = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>")


def base_model(n_tokens):
    cfg = GPT2Config(vocab_size=n_tokens, n_positions=32, n_embd=64, n_layer=2, n_head=4,
                     bos_token_id=2, eos_token_id=2, pad_token_id=1)
    return GPT2LMHeadModel(cfg)


def example(rng):
    c, d = rng.choice(CITIES), rng.choice(DAYS)
    prompt = rng.choice([f"book a flight to {c} on {d}", f"i want to go to {c} on {d} please",
                         f"on {d} the train to {c} for me"])
    return prompt, f"<slots> <city> {c} <day> {d} </slots> <eos>"


def collate(tok):
    def fn(batch):
        enc = tok([f"{p} {a}" for p, a in batch], return_tensors="pt", padding=True)
        labels = enc.input_ids.clone()
        labels[enc.attention_mask == 0] = -100
        for r, (p, _) in enumerate(batch):
            labels[r, :len(p.split())] = -100
        return {"input_ids": enc.input_ids, "attention_mask": enc.attention_mask, "labels": labels}
    return fn


def answer(model, tok, prompt, steps=7):
    ids = tok(f"{prompt} <slots>", return_tensors="pt").input_ids
    with torch.no_grad():
        for _ in range(steps - 2):
            ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], dim=1)
    return ids[0, len(prompt.split()):].tolist()


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    tok = base_tokenizer()
    model = base_model(len(tok))

    tok.add_tokens(NEW_TOKENS, special_tokens=True)
    model.resize_token_embeddings(len(tok), pad_to_multiple_of=8)

    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)

    loader = DataLoader([example(rng) for _ in range(600)], batch_size=16, shuffle=True, collate_fn=collate(tok))
    for epoch in range(5):
        model.train()
        for batch in loader:
            loss = model(**batch).loss
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        held = [example(rng) for _ in range(50)]
        hits = sum(answer(model, tok, p) == tok(a).input_ids[:6] for p, a in held)
        print(f"epoch {epoch} loss {loss.item():.3f} exact {hits}/50")


if __name__ == "__main__":
    main()
