"""Instruction tuning loop in miniature: GPT-2 config, answer-only loss, gradient accumulation."""
import random

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

random.seed(2)
torch.manual_seed(2)
WORDS = "zero one two three four five six seven eight nine".split()
SPECIAL = ["<eos>", "<user>", "<bot>", "after", "before"]
vocab = {w: i for i, w in enumerate(SPECIAL + WORDS)}
EOS = vocab["<eos>"]
PAD = EOS        # no token of its own, as in many GPT-2 derived tokenizers


def example():
    a = random.randrange(10)
    k = random.randint(1, 3)
    if random.random() < 0.5:
        ask, ans = ["after", WORDS[a]], [WORDS[(a + i + 1) % 10] for i in range(k)]
    else:
        ask, ans = ["before", WORDS[a]], [WORDS[(a - i - 1) % 10] for i in range(k)]
    prompt = ["<user>", WORDS[k]] + ask + ["<bot>"]
    return [vocab[w] for w in prompt], [vocab[w] for w in ans] + [EOS]


def collate(rows):
    longest = max(len(p) + len(a) for p, a in rows)
    ids = torch.full((len(rows), longest), PAD)
    att = torch.zeros(len(rows), longest, dtype=torch.long)
    labels = torch.full((len(rows), longest), -100)
    for i, (p, a) in enumerate(rows):
        n = len(p) + len(a)
        ids[i, :n] = torch.tensor(p + a)
        att[i, :n] = 1
        labels[i, len(p):n] = torch.tensor(a)
    return {"input_ids": ids, "attention_mask": att, "labels": labels}


data = [example() for _ in range(600)]
train = DataLoader(data, batch_size=8, shuffle=True, collate_fn=collate)
model = GPT2LMHeadModel(GPT2Config(vocab_size=len(vocab), n_positions=16, n_embd=32, n_layer=2, n_head=4,
                                   bos_token_id=EOS, eos_token_id=EOS,
                                   attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0))
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
ACCUM = 2


def windows(loader, k):
    buf = []
    for b in loader:
        buf.append(b)
        if len(buf) == k:
            yield buf
            buf = []
    if buf:
        yield buf


@torch.no_grad()
def answer(prompt):
    """Greedy decoding of one prompt; every question of this toy language is also seen in training."""
    model.eval()
    ids = torch.tensor([prompt])
    for _ in range(5):
        nxt = model(input_ids=ids).logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, nxt], 1)
        if nxt.item() == EOS:
            break
    return ids[0, len(prompt):].tolist()


for epoch in range(7):
    model.train()
    for group in windows(train, ACCUM):
        # tokens per window differ, so weight every micro batch by its share of answer tokens
        n_tok = sum((b["labels"][:, 1:] != -100).sum() for b in group)
        for b in group:
            share = (b["labels"][:, 1:] != -100).sum() / n_tok
            loss = model(**b).loss * share
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
    ok = sum(answer(p) == a for p, a in data[:60])
    print(f"epoch {epoch} training questions answered {ok}/60")
