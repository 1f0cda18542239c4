import logging

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup, set_seed

from tickets import sample
from tok import build_tokenizer

log = logging.getLogger("sft")
MAX_LEN = 32


class SFTCollator:
    def __init__(self, tokenizer):
        self.tok = tokenizer
        self.kw = dict(padding="max_length", max_length=MAX_LEN, truncation=True, return_tensors="pt")

    def __call__(self, rows):
        full = self.tok([r["prompt"] + " " + r["answer"] for r in rows], **self.kw)
        prompts = self.tok([r["prompt"] for r in rows], **self.kw)
        weights = full["attention_mask"].clone()
        for row, ids in zip(weights, prompts["input_ids"]):
            row[: len(ids)] = 0
        return {"input_ids": full["input_ids"], "attention_mask": full["attention_mask"], "weights": weights}


def answer_loss(logits, ids, weights):
    per_token = F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
    w = weights[:, 1:].to(per_token.dtype)
    return (per_token * w).sum() / w.sum().clamp(min=1.0)


@torch.no_grad()
def token_accuracy(model, tok, rows):
    model.eval()
    right = total = 0
    for r in rows:
        prompt = tok(r["prompt"], return_tensors="pt")["input_ids"]
        gold = tok(r["answer"])["input_ids"]
        ids = prompt
        for _ in gold:
            ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], 1)
        right += sum(int(a == b) for a, b in zip(ids[0, prompt.shape[1]:].tolist(), gold))
        total += len(gold)
    return right / total


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    set_seed(0)
    train, test = sample(384), sample(12, seed=1)
    tok = build_tokenizer([r["prompt"] + " " + r["answer"] for r in train])
    cfg = GPT2Config(vocab_size=len(tok), n_positions=MAX_LEN, n_embd=64, n_layer=2, n_head=4,
                     bos_token_id=2, eos_token_id=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(cfg)
    loader = DataLoader(train, batch_size=32, shuffle=True, collate_fn=SFTCollator(tok))
    epochs = 4
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    sched = get_cosine_schedule_with_warmup(opt, 5, epochs * len(loader))
    for ep in range(epochs):
        model.train()
        total = 0.0
        for batch in loader:
            logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
            loss = answer_loss(logits, batch["input_ids"], batch["weights"])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item()
        log.info("epoch %d answer loss %.4f test token acc %.3f", ep, total / len(loader), token_accuracy(model, tok, test))


if __name__ == "__main__":
    main()
